import { parseEnv } from "node:util";
import { asWritten, withoutValues, withVariable } from "../platform/env-file.ts";
import { SetupError } from "./setup-error.ts";

/** A variable that .env should have. */
export interface Setting {
  readonly name: string;
  readonly value: string;
  /** Whether another value may stay: a person chose it. */
  readonly isOpen: boolean;
}

const heading = "# Hotpush, by `hotpush init`";

/**
 * The text of .env with `settings` in it: a wrong value is replaced in its place, and every other line stays.
 *
 * @throws SetupError if a value cannot be written so that all programs that read the file agree on it
 */
export function withSettings(text: string, settings: readonly Setting[]): string {
  const now = parseEnv(text);
  const wrong = settings.filter(({ name, value, isOpen }) => {
    const given = now[name];
    return given === undefined || given === "" || (!isOpen && given !== value);
  });
  const replaced = wrong.filter(({ name }) => name in now);
  const changed = replaced.reduce(
    (before, setting) => withVariable(before, setting.name, written(setting), setting.name),
    text,
  );
  const missing = wrong.filter(({ name }) => !(name in now));
  if (missing.length === 0) return changed;
  const kept = changed.replace(/\n*$/, "");
  const before = kept === "" ? [] : kept.includes(heading) ? [kept] : [kept, "", heading];
  const added = missing.map((setting) => `${setting.name}=${written(setting)}`);
  return [...(kept === "" ? [heading] : before), ...added, ""].join("\n");
}

/** The text with all values hidden but those of `settings` that are no secret: it may be shown on a screen. */
export function withoutOtherValues(text: string, settings: readonly Setting[]): string {
  const names = settings.map(({ name }) => name).filter((name) => !name.startsWith("WEBHOOK_SECRET"));
  return withoutValues(text, new Set(names));
}

function written({ name, value }: Setting): string {
  const raw = asWritten(value);
  if (raw !== null) return raw;
  throw new SetupError(
    `${name} would be ${JSON.stringify(value)}, which cannot be written to .env: rename the directory so that its path has no apostrophe and no line end.`,
  );
}
