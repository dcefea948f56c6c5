import "./environment.ts";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
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
