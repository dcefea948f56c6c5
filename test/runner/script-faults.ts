import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ProblemCode } from "../../src/problems.ts";
import { nobody } from "../harness/requirements.ts";
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

export const scriptFaults: readonly ScriptFault[] = [
  { name: "no script", code: "script_missing", make: ({ scriptPath }) => rmSync(scriptPath) },
  {
    name: "a script that is a link to nothing",
    code: "script_missing",
    make({ scriptPath }) {
      rmSync(scriptPath);
      symlinkSync("scripts/deploy.sh", scriptPath);
    },
  },
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
  ...(
    [
      ["a script without a first line", "script_without_interpreter", "echo hello\n"],
      ["an empty script", "script_without_interpreter", ""],
      ["a first line that names nothing", "script_without_interpreter", "#! \necho hello\n"],
      ["Windows line endings", "script_crlf", quickScript.replaceAll("\n", "\r\n")],
      ["an interpreter that does not exist", "interpreter_missing", "#!/opt/none/bash\n"],
      ["an interpreter that env does not find", "interpreter_missing", "#!/usr/bin/env -S none-such -e\n"],
      ["an interpreter that is no program", "interpreter_missing", "#!/etc/passwd\n"],
    ] as const
  ).map(([name, code, text]) => ({
    name,
    code,
    make: ({ scriptPath }: Place) => writeScript(scriptPath, text),
  })),
];

/** What can be wrong around it. */
export const placeFaults: readonly ScriptFault[] = [
  {
    name: "no repository",
    code: "repository_missing",
    make: ({ repoPath }) => rmSync(repoPath, { recursive: true }),
  },
  {
    name: "a git repository of another user",
    code: "repository_dubious_ownership",
    make({ repoPath }) {
      execFileSync("git", ["-C", repoPath, "init", "--quiet"]);
      execFileSync("chown", ["-R", String(nobody), repoPath]);
    },
  },
  ...(
    [
      ["a link in place of the script's logs", (path: string, { root }: Place) => symlinkSync(root, path)],
      [
        "a directory of another user for the script's logs",
        (path: string) => {
          mkdirSync(path);
          chownSync(path, nobody, nobody);
        },
      ],
      [
        "a directory for the script's logs to which all may write",
        (path: string) => {
          mkdirSync(path);
          chmodSync(path, 0o777);
        },
      ],
    ] as const
  ).map(([name, make]) => ({
    name,
    code: "temporary_directory_unusable" as const,
    make: (place: Place) => make(join(place.temporaryPath, `hotpush-${process.getuid?.()}`), place),
  })),
  {
    name: "a temporary directory that is a file",
    code: "temporary_directory_unusable",
    make({ temporaryPath }) {
      rmSync(temporaryPath, { recursive: true });
      writeFileSync(temporaryPath, "");
    },
  },
];
