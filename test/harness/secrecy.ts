import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Redactor } from "../../src/redaction.ts";
import { createLineCutter } from "../../src/runner/log-file.ts";
import type { RunningService } from "./service.ts";

/** How programs write a secret down, by name. */
export function encodings(secret: string): Readonly<Record<string, string>> {
  return {
    plain: secret,
    "URL encoding": encodeURIComponent(secret),
    "URL encoding in lower case": encodeURIComponent(secret).replace(/%../g, (code) => code.toLowerCase()),
    JSON: JSON.stringify(secret).slice(1, -1),
  };
}

/** What a log has of output that comes in pieces. */
export function redacted(redactor: Redactor, pieces: readonly Buffer[]): string {
  const lines: string[] = [];
  const cutter = createLineCutter((line) => lines.push(line), redactor);
  for (const piece of pieces) cutter.push(piece);
  cutter.finish();
  return lines.join("\n");
}

/** The output of a service, line by line. */
export function printedBy({ log }: Pick<RunningService, "log">): string[] {
  return [...log.lines.map((line) => JSON.stringify(line)), ...log.otherText];
}

/** The content of all files below `directory`, each byte a character. */
export function contentsOf(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .map((name) => join(directory, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path, "latin1"));
}
