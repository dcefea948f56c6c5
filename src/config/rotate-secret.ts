import { randomBytes } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { parseEnv } from "node:util";
import { asWritten, rawValue, withoutVariable, withVariable } from "../platform/env-file.ts";
import { rewriteFile } from "../platform/replace-file.ts";
import { CommandError } from "../problems.ts";
import { secretFault } from "./secret.ts";

const [current, previous] = ["WEBHOOK_SECRET", "WEBHOOK_SECRET_PREVIOUS"] as const;
const secretBytes = 32;

/**
 * Replaces the secret in the `.env` file at `path`, or in the file that its WEBHOOK_SECRET_FILE names, and keeps the old one
 * as the previous secret. All other lines stay as they are.
 *
 * @param options.secret the new one, if the git host made it; else 32 random bytes in hex
 * @param options.isReplacingPrevious whether an existing previous secret may be discarded
 * @returns the new secret, and the file it is in
 * @throws CommandError if the file cannot be read or written, or an earlier rotation is not finished
 */
export function rotateSecret(
  path: string,
  options: { readonly secret?: string; readonly isReplacingPrevious: boolean },
): { readonly secret: string; readonly secretPath: string } {
  const text = readText(path);
  const secret = options.secret ?? randomBytes(secretBytes).toString("hex");
  const fault = secretFault(current, secret);
  if (fault) throw new CommandError(fault);
  const { old, isInFile, secretPath, previousPath } = locateSecrets(text, path);
  if (hasPrevious(text) && !options.isReplacingPrevious) {
    throw new CommandError(
      `${path} has a previous secret already, so an earlier rotation is not finished. Finish it with: hotpush secret drop-previous; or discard the previous secret with --force.`,
    );
  }
  if (old === secret)
    throw new CommandError("The new secret is the same as the old one. Nothing was changed.");
  if (!isInFile) {
    const raw = asWritten(secret);
    if (raw === null) throw unwritable(path);
    const kept = old === "" ? text : withVariable(text, previous, rawValue(text, current) ?? "", current);
    write(path, withVariable(kept, current, raw, current));
    return { secret, secretPath };
  }
  // In this order, a service that starts at any moment finds the old secret.
  write(previousPath, `${old}\n`, secretPath);
  write(path, withVariable(text, `${previous}_FILE`, previousPath, `${current}_FILE`));
  write(secretPath, `${secret}\n`);
  return { secret, secretPath };
}

function unwritable(path: string): CommandError {
  return new CommandError(
    `The new secret contains an apostrophe or a line end, which cannot be written to ${path}. Generate another one at the git host, and pass it to --stdin. Nothing was changed.`,
  );
}

/**
 * Removes the previous secret from the `.env` file at `path`, and the file that it is in, if it has one.
 *
 * @throws CommandError if there is none
 */
export function dropPreviousSecret(path: string): void {
  const text = readText(path);
  if (!hasPrevious(text))
    throw new CommandError(`${path} has no previous secret, so there is nothing to drop.`);
  const { previousPath } = locateSecrets(text, path);
  const isInFile = rawValue(text, `${previous}_FILE`) !== null;
  write(path, withoutVariable(withoutVariable(text, previous), `${previous}_FILE`));
  if (isInFile) rmSync(previousPath, { force: true });
}

function hasPrevious(text: string): boolean {
  const env = parseEnv(text);
  return Boolean(env[previous] || env[`${previous}_FILE`]);
}

interface SecretLocations {
  /** "" if there is none yet */
  readonly old: string;
  readonly isInFile: boolean;
  readonly secretPath: string;
  readonly previousPath: string;
}

function locateSecrets(text: string, path: string): SecretLocations {
  const env = parseEnv(text);
  const secretPath = env[`${current}_FILE`];
  if (!secretPath) {
    const old = env[current];
    if (old === undefined) {
      throw new CommandError(
        `${path} does not set ${current}. Name the file that the service reads, such as: --env-file /etc/hotpush.env`,
      );
    }
    return {
      old: secretFault(current, old) ? "" : old,
      isInFile: false,
      secretPath: path,
      previousPath: path,
    };
  }
  const previousPath = env[`${previous}_FILE`] || `${secretPath}.previous`;
  return { old: readText(secretPath).replace(/\r?\n$/, ""), isInFile: true, secretPath, previousPath };
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CommandError(
      `${path} cannot be read (${code}). Name the file that the service reads, such as: --env-file /etc/hotpush.env`,
    );
  }
}

/** @param like a new file gets its mode and owner, so the same users can read it */
function write(path: string, text: string, like: string = path): void {
  try {
    rewriteFile(path, text, like);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CommandError(
      `${path} cannot be replaced (${code}). Run this as a user who may write in its directory, such as root.`,
    );
  }
}
