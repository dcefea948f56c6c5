import { parseEnv } from "node:util";
import { asWritten } from "../platform/env-file/env-text.ts";
import { SetupError } from "./setup-error.ts";

/** A variable that .env should have. */
export interface Setting {
  readonly name: string;
  readonly value: string;
  /** Whether a value that is there already may be another one: then it is a person's choice, and stays. */
  readonly isOpen: boolean;
}

const heading = "# Hotpush, by `hotpush init`";

/**
 * The text of .env with `settings` in it: every line stays, but those whose value is not as it has to be.
 *
 * @throws SetupError where a value cannot be written so that all who read the file agree on it
 */
export function withSettings(text: string, settings: readonly Setting[]): string {
  const now = parseEnv(text);
  const wrong = settings.filter(({ name, value, isOpen }) => {
    const given = now[name];
    return given === undefined || given === "" || (!isOpen && given !== value);
  });
  const replaced = new Map(wrong.filter(({ name }) => name in now).map((one) => [one.name, one]));
  const lines = text.split("\n").map((line) => {
    const name = /^\s*(?:export\s+)?([\w.-]+)\s*=/.exec(line)?.[1] ?? "";
    const setting = replaced.get(name);
    return setting ? assignment(setting) : line;
  });
  const missing = wrong.filter(({ name }) => !(name in now)).map(assignment);
  if (missing.length === 0) return lines.join("\n");
  const kept = lines.join("\n").replace(/\n*$/, "");
  const before = kept === "" ? [] : kept.includes(heading) ? [kept] : [kept, ""];
  return [...before, ...(kept.includes(heading) ? [] : [heading]), ...missing, ""].join("\n");
}

/** The text with all values hidden but those of `settings` that are no secret: what may be shown on a screen. */
export function withoutValues(text: string, settings: readonly Setting[]): string {
  const shown = new Set(settings.map(({ name }) => name).filter((name) => !isSecretName(name)));
  // A value in quotes may have several lines.
  const assignments = /^(\s*(?:export\s+)?([\w.-]+)\s*=)([ \t]*(?:"[^"]*"|'[^']*'|`[^`]*`)?.*)$/gm;
  return text.replace(assignments, (line, start: string, name: string, value: string) =>
    shown.has(name) || value === "" ? line : `${start}…`,
  );
}

function isSecretName(name: string): boolean {
  return name.startsWith("WEBHOOK_SECRET");
}

function assignment({ name, value }: Setting): string {
  const written = asWritten(value);
  if (written !== null) return `${name}=${written}`;
  throw new SetupError(
    `${name} would be ${JSON.stringify(value)}, which cannot be written to .env: rename the directory so that its path has no apostrophe and no line end.`,
  );
}
