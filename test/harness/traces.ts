import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { RunningService } from "./service.ts";

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
