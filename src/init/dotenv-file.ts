import { parseEnv } from "node:util";
import { asWritten, withoutValues, withVariable } from "../platform/env-file.ts";
import { SetupError } from "./setup-error.ts";

/** A variable that .env should have. */
export interface Setting {
  readonly name: string;
  readonly value: string;
  /** Whether a person may choose another value: then a value that is there stays. */
  readonly isOpen: boolean;
}

const heading = "# Hotpush, by `hotpush init`";

/**
 * The text of .env with `settings` in it. A wrong value is replaced in its place, a missing one is added at the end, and
 * every other line stays.
 *
 * @throws SetupError if a value cannot be written so that all programs that read the file agree on it
 */
export function withSettings(text: string, settings: readonly Setting[]): string {
  const now = parseEnv(text);
  const wrong = settings.filter(({ name, value, isOpen }) => !now[name] || (!isOpen && now[name] !== value));
  const isMissing = wrong.some(({ name }) => !(name in now));
  return wrong.reduce(
    (before, setting) => withVariable(before, setting.name, written(setting), setting.name),
    isMissing ? withHeading(text) : text,
  );
}

/** The text with all values hidden except those of `settings` that are not secret: safe to show on a screen. */
export function withoutOtherValues(text: string, settings: readonly Setting[]): string {
  const names = settings.map(({ name }) => name).filter((name) => !name.startsWith("WEBHOOK_SECRET"));
  return withoutValues(text, new Set(names));
}

function withHeading(text: string): string {
  const kept = text.replace(/\n*$/, "");
  if (kept.includes(heading)) return `${kept}\n`;
  return `${kept}${kept === "" ? "" : "\n\n"}${heading}\n`;
}

function written({ name, value }: Setting): string {
  const raw = asWritten(value);
  if (raw !== null) return raw;
  throw new SetupError(
    `${name} would be ${JSON.stringify(value)}, which cannot be written to .env. Rename the directory so that its path has no apostrophe and no line break.`,
  );
}
