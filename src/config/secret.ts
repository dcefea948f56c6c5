import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { inspect } from "node:util";
import type { Environment } from "./settings.ts";

/** A value that cannot be printed by accident: JSON, template strings and `inspect` all show `[redacted]`. */
export interface Secret {
  readonly reveal: () => string;
}

/** Which of the two secrets signed a delivery: while it is `previous`, a rotation is not finished. */
export type SecretSlot = "current" | "previous";

/** Wraps `value` so that only `reveal()` gives it back. */
export function makeSecret(value: string): Secret {
  const redacted = () => "[redacted]";
  return Object.freeze({
    reveal: () => value,
    toString: redacted,
    toJSON: redacted,
    [inspect.custom]: redacted,
  });
}

/** The command that generates a good secret; every refusal of a bad one names it. */
export const newSecretCommand = "openssl rand -hex 32";

/** The built-in default, with which the service refuses to start. */
const placeholderSecret = "change-me";
/** As documents have them, `<openssl rand -hex 32>`; the quotes are what `docker run --env` leaves of `WEBHOOK_SECRET=""`. */
const placeholder = /^(?:<[^<>]*>|change-?me|undefined|null|""|'')$/i;
const advisedBytes = 16;
/** Begins a signing token of Standard Webhooks; its key follows in base64. */
const tokenPrefix = "whsec_";
/** In either alphabet: decoding accepts both. */
const wholeBase64 = /^[A-Za-z0-9+/_-]+={0,2}$/;
const leastTokenBytes = 16;

type SecretName = "WEBHOOK_SECRET" | "WEBHOOK_SECRET_PREVIOUS";

/**
 * Reads a secret from `NAME`, or from the file that `NAME_FILE` names, without one line end at its end.
 *
 * @returns the text ("" if a previous secret is not set, the placeholder if the current one is not), and a sentence on
 *   why it cannot be read, or null
 */
export function readSecretText(env: Environment, name: SecretName): { text: string; fault: string | null } {
  const path = env[`${name}_FILE`];
  if (!path) {
    const fallback = name === "WEBHOOK_SECRET" ? placeholderSecret : "";
    return { text: env[name] ?? fallback, fault: null };
  }
  if (env[name]) return { text: "", fault: `${name} and ${name}_FILE are both set; set one of them.` };
  const read = readNamedFile(`${name}_FILE`, path);
  return typeof read === "string" ? { text: read.replace(/\r?\n$/, ""), fault: null } : { text: "", ...read };
}

/** A sentence on why `text` is not a valid secret, or null. An empty key would let anybody sign. */
export function secretFault(name: SecretName, text: string): string | null {
  if (text === "" && name === "WEBHOOK_SECRET_PREVIOUS") return null;
  const kind = text.trim() === "" ? "empty" : placeholder.test(text.trim()) ? "still the placeholder" : null;
  if (kind)
    return `${name} is ${kind}; make one with: ${newSecretCommand}, and set the same in the webhook's form at the git host.`;
  if (!text.startsWith(tokenPrefix) || isWholeToken(text)) return null;
  return `${name} begins with ${tokenPrefix} and is not a whole signing token: the rest must be at least ${leastTokenBytes} bytes in base64. Copy the token as GitLab shows it when it is made; a masked one has stars in it.`;
}

/** Decoding skips characters that are not base64, and an empty key would let anybody sign. */
function isWholeToken(text: string): boolean {
  const encoded = text.trim().slice(tokenPrefix.length);
  return wholeBase64.test(encoded) && Buffer.from(encoded, "base64").length >= leastTokenBytes;
}

/** A warning about a secret that works but is unwise. */
export function secretWarnings(current: string): readonly string[] {
  const bytes = Buffer.byteLength(current);
  const advice = `WEBHOOK_SECRET has ${bytes} bytes, which can be guessed; make one of 32 with: ${newSecretCommand}`;
  return bytes >= advisedBytes ? [] : [advice];
}

/**
 * Distinguishes one secret from the next: two bytes of a hash, which are too few to guess a secret by.
 *
 * @returns 4 hex digits
 */
export function secretFingerprint(secret: Secret): string {
  return createHash("sha256").update(`hotpush\0${secret.reveal()}`).digest("hex").slice(0, 4);
}

const longestFileBytes = 64 * 1024;

/**
 * Reads a small file of settings. A pipe would block the service.
 *
 * @param isPrivate refuses a file that other users can read
 * @throws Error with a sentence that names the file
 */
export function readSmallFile(path: string, isPrivate: boolean): string {
  try {
    const stats = statSync(path);
    if (!stats.isFile()) throw new Error(`${path} is not a regular file.`);
    if (isPrivate && (stats.mode & 0o077) !== 0)
      throw new Error(`Other users can read ${path}. Run: chmod 600 ${path}`);
    if (stats.size > longestFileBytes) throw new Error(`${path} has more than 64 KiB.`);
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw code === undefined ? error : new Error(`${path} cannot be read (${code}).`);
  }
}

/** Why a setting cannot be used: a sentence that begins with its name. */
export interface Fault {
  readonly fault: string;
}

/**
 * Reads the small file that a setting names.
 *
 * @param isPrivate refuses a file that other users can read
 */
export function readNamedFile(variable: string, path: string, isPrivate = false): string | Fault {
  try {
    return readSmallFile(path, isPrivate);
  } catch (error) {
    return { fault: `${variable}: ${(error as Error).message}` };
  }
}
