import { chmodSync, mkdirSync, rmSync } from "node:fs";
import type { ProblemCode } from "../../src/problems.ts";
import { quickScript } from "../harness/service.ts";
import { writeScript } from "../harness/temporary.ts";

/** A checkout whose script can run. */
export interface Place {
  readonly root: string;
  readonly repoPath: string;
  readonly scriptPath: string;
  /** The TMPDIR of the service. */
  readonly temporaryPath: string;
}

/** What can be wrong with a script, and prevents its start. */
export interface ScriptFault {
  readonly name: string;
  readonly code: ProblemCode;
  readonly make: (place: Place) => void;
}

/** A table of what can be wrong: name, code, and what makes it so. */
export function faultsIn(
  rows: readonly (readonly [string, ProblemCode, ScriptFault["make"]])[],
): readonly ScriptFault[] {
  return rows.map(([name, code, make]) => ({ name, code, make }));
}

const withText = (text: string) => (place: Place) => void writeScript(place.scriptPath, text);

export const scriptFaults = faultsIn([
  ["no script", "script_missing", ({ scriptPath }) => rmSync(scriptPath)],
  [
    "a directory in place of the script",
    "script_missing",
    ({ scriptPath }) => {
      rmSync(scriptPath);
      mkdirSync(scriptPath);
    },
  ],
  ["a script that is not executable", "script_not_executable", (place) => chmodSync(place.scriptPath, 0o644)],
  ["a script without a first line", "script_without_interpreter", withText("echo hello\n")],
  ["Windows line endings", "script_crlf", withText(quickScript.replaceAll("\n", "\r\n"))],
  ["an interpreter that does not exist", "interpreter_missing", withText("#!/opt/none/bash\n")],
  ["an interpreter that env misses", "interpreter_missing", withText("#!/usr/bin/env -S none-such -e\n")],
]);
