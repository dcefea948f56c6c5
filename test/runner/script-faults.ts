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

function withText(name: string, code: ProblemCode, text: string): ScriptFault {
  return { name, code, make: ({ scriptPath }) => writeScript(scriptPath, text) };
}

export const scriptFaults: readonly ScriptFault[] = [
  { name: "no script", code: "script_missing", make: ({ scriptPath }) => rmSync(scriptPath) },
  {
    name: "a directory in place of the script",
    code: "script_missing",
    make({ scriptPath }) {
      rmSync(scriptPath);
      mkdirSync(scriptPath);
    },
  },
  {
    name: "a script that is not executable",
    code: "script_not_executable",
    make: ({ scriptPath }) => chmodSync(scriptPath, 0o644),
  },
  withText("a script without a first line", "script_without_interpreter", "echo hello\n"),
  withText("Windows line endings", "script_crlf", quickScript.replaceAll("\n", "\r\n")),
  withText("an interpreter that does not exist", "interpreter_missing", "#!/opt/none/bash\n"),
  withText(
    "an interpreter that env does not find",
    "interpreter_missing",
    "#!/usr/bin/env -S none-such -e\n",
  ),
];
