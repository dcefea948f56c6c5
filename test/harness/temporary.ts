import "./environment.ts";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Anything that runs callbacks at its end: a test, or a bench. */
export interface Scope {
  readonly after: (end: () => unknown) => void;
}

/** A directory that is removed when the test ends. */
export function temporaryDirectory(scope: Scope): string {
  const path = mkdtempSync(join(tmpdir(), "hotpush-test-"));
  scope.after(() => rmSync(path, { recursive: true, force: true, maxRetries: 5 }));
  return path;
}

/** Writes an executable file. */
export function writeScript(path: string, text: string): string {
  writeFileSync(path, text);
  chmodSync(path, 0o755);
  return path;
}

/** The lines of a file, none if it is not there. */
export function linesOf(path: string): string[] {
  return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
}
