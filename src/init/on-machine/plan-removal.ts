import { existsSync, lstatSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseEnv } from "node:util";
import { composeFileNames, namedFiles, namingFiles } from "../../platform/compose/commands.ts";
import { asWritten, withoutVariable, withVariable } from "../../platform/env-file.ts";
import { ownUid } from "../../platform/files.ts";
import { readForeignFile, removeForeignFile, replaceForeignFile } from "../../platform/foreign-files.ts";
import { findOverride, isWrittenByInit, ownComposeFile } from "../project.ts";
import { SetupError } from "../setup-error.ts";

/** A file in a checkout that `init` wrote for the machine part. */
export interface CheckoutChange {
  readonly path: string;
  /** Its text without what is Hotpush's; null: nothing else is in it, so it is removed. */
  readonly text: string | null;
}

/** Finds what `init` added to the checkout in `root` so that the machine part serves it. */
export function planCheckoutRemoval(root: string): readonly CheckoutChange[] {
  const override = findOverride(root);
  const names = [ownComposeFile, ...(override === null ? [] : [override])];
  const written = names
    .map((name) => join(root, name))
    .filter((path) => existsSync(path) && isWrittenByInit(path));
  return [...written.map((path) => ({ path, text: null })), ...dotenvChange(root, written)];
}

/** Makes the changes. A file keeps its mode and its owner. The owner of the checkout may have put a link in its place. */
export function applyChange({ path, text }: CheckoutChange): void {
  if (text === null) {
    removeForeignFile(path);
    return;
  }
  const { mode, uid, gid } = lstatSync(path);
  replaceForeignFile(path, text, { mode: mode & 0o777, owner: ownUid() === 0 ? { uid, gid } : null });
}

/** Larger than any file of settings. */
const mostBytes = 1024 ** 2;

function dotenvChange(root: string, removed: readonly string[]): readonly CheckoutChange[] {
  const path = join(root, ".env");
  if (!existsSync(path)) return [];
  const before = readForeignFile(path, { mostBytes }).toString();
  const env = parseEnv(before);
  const named = namedFiles(env).map((file) => resolve(root, file));
  const kept = named.filter((file) => !removed.includes(file));
  if (kept.length === named.length) return [];
  if (lstatSync(path).isSymbolicLink())
    throw new SetupError(
      `${path} is a link. Remove COMPOSE_FILE from the file that it leads to, and run this again.`,
    );
  const text = withoutHeading(withComposeFile(before, isUsual(root, kept) ? [] : kept, env));
  return [{ path, text: text.trim() === "" ? null : text }];
}

function withComposeFile(
  text: string,
  files: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): string {
  const value = files.length === 0 ? null : asWritten(namingFiles(files, env));
  return value === null
    ? withoutVariable(text, "COMPOSE_FILE")
    : withVariable(text, "COMPOSE_FILE", value, "COMPOSE_FILE");
}

/** Whether compose uses these files by itself. */
function isUsual(root: string, files: readonly string[]): boolean {
  const main = composeFileNames.find((name) => existsSync(join(root, name)));
  const override = findOverride(root);
  const usual = [main, override].flatMap((name) => (name ? [join(root, name)] : []));
  return files.join("\n") === usual.join("\n");
}

function withoutHeading(text: string): string {
  return text.replace(/\n?^# Hotpush, by `hotpush init`\n(?=\s*$)/m, "");
}
