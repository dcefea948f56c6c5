import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { makeSecret, type Secret } from "./secret.ts";

export const targetKinds = ["webhook", "slack", "discord", "ntfy", "apprise"] as const;

/** Where notifications go: a line of the file that NOTIFY_FILE names. */
export interface NotifyTarget {
  readonly kind: (typeof targetKinds)[number];
  /** Names it in the log and in the outbox, and shows nothing secret: `slack at hooks.slack.com (3f2c)`. */
  readonly name: string;
  /** Anyone who knows it may often post to it. */
  readonly url: Secret;
  /** The key that signs for a webhook, the token for ntfy. */
  readonly key: Secret | null;
}

const longestFileBytes = 64 * 1024;
const leastKeyBytes = 16;
const lineForm = `a kind (${targetKinds.join(", ")}), an http or https URL, and for a webhook its key, separated by spaces`;

/**
 * Reads the file with the targets of notifications.
 *
 * @returns the targets, or a sentence on what is wrong with the file, which begins with NOTIFY_FILE
 */
export function readNotifyFile(path: string): readonly NotifyTarget[] | string {
  const text = readPrivateFile("NOTIFY_FILE", path);
  if (typeof text !== "string") return text.fault;
  const lines = text.split("\n").map((line) => line.trim());
  const targets: NotifyTarget[] = [];
  for (const [index, line] of lines.entries()) {
    if (line === "" || line.startsWith("#")) continue;
    const target = parseLine(line);
    const place = `NOTIFY_FILE names ${path}, whose line ${index + 1}`;
    if (typeof target === "string") return `${place} ${target}`;
    if (targets.some(({ name }) => name === target.name)) return `${place} repeats an earlier one.`;
    targets.push(target);
  }
  return Object.freeze(targets);
}

/**
 * Reads a file that only its owner may read.
 *
 * @param variable the setting that names it
 */
export function readPrivateFile(variable: string, path: string): string | { readonly fault: string } {
  const named = `${variable} names ${path}`;
  try {
    const stats = statSync(path);
    if (!stats.isFile()) return { fault: `${named}, which is not a regular file.` };
    if ((stats.mode & 0o077) !== 0) {
      return { fault: `${named}, which other users can read. Run: chmod 600 ${path}` };
    }
    if (stats.size > longestFileBytes) return { fault: `${named}, which has more than 64 KiB.` };
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { fault: `${named}, which cannot be read (${code ?? "unknown error"}).` };
  }
}

/** A fault does not repeat the line: it may be a secret in the wrong place. */
function parseLine(line: string): NotifyTarget | string {
  const [word = "", address = "", key, ...rest] = line.split(/\s+/);
  const kind = targetKinds.find((one) => one === word);
  const url = /^https?:\/\//i.test(address) && URL.canParse(address) ? new URL(address) : null;
  if (kind === undefined || url === null || rest.length > 0) return `is not ${lineForm}.`;
  if (kind === "webhook" && keyBytes(key ?? "").length < leastKeyBytes) {
    return `has no key of at least ${leastKeyBytes} bytes. Make one with: echo whsec_$(openssl rand -base64 32)`;
  }
  const hash = createHash("sha256").update(`${kind} ${url.href}`).digest("hex").slice(0, 4);
  const name = `${kind} at ${url.host} (${hash})`;
  return { kind, name, url: makeSecret(url.href), key: key === undefined ? null : makeSecret(key) };
}

/** The key of a webhook: in Standard Webhooks' form `whsec_` and base64, else the text itself. */
export function keyBytes(text: string): Buffer {
  return text.startsWith("whsec_") ? Buffer.from(text.slice("whsec_".length), "base64") : Buffer.from(text);
}
