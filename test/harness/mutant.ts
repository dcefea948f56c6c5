import assert from "node:assert/strict";
import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { mainPath } from "./service.ts";
import { type Scope, temporaryDirectory } from "./temporary.ts";

export interface Mutation {
  /** Relative to src/ */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/**
 * Makes a copy of the service that is broken in one place, so that a test can show that it detects the fault.
 *
 * @returns the path of its main.ts
 */
export function makeMutant(scope: Scope, { file, from, to }: Mutation): string {
  const source = dirname(mainPath);
  const directory = temporaryDirectory(scope);
  cpSync(source, join(directory, "src"), { recursive: true });
  for (const name of ["node_modules", "package.json"]) {
    symlinkSync(join(dirname(source), name), join(directory, name));
  }
  const path = join(directory, "src", file);
  const parts = readFileSync(path, "utf8").split(from);
  assert.equal(parts.length, 2, `${file} has ${JSON.stringify(from)} ${parts.length - 1} times, not once`);
  writeFileSync(path, parts.join(to));
  return join(directory, "src/main.ts");
}
