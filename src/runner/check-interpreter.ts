import { constants } from "node:fs";
import { isAllowed, kindOf, readStart } from "../platform/files.ts";
import { findProgram } from "../platform/find-program.ts";
import type { Problem } from "../problems.ts";

/** The longest `#!` line that Linux reads. */
const shebangBytes = 256;

/** What is wrong with the first line of `script`, or with the program that it names, or null. */
export function checkInterpreterLine(script: string, searchPath: string): Problem | null {
  const start = readStart(script, shebangBytes).toString();
  const [line = ""] = start.split("\n");
  if (!line.startsWith("#!")) {
    return {
      code: "script_without_interpreter",
      detail: `${script} does not begin with #!, so nobody knows what is to run it. Make its first line: #!/usr/bin/env bash`,
    };
  }
  if (line.endsWith("\r")) {
    return {
      code: "script_crlf",
      detail: `${script} has Windows line endings. Run: sed -i 's/\\r$//' ${script}, add the line "deploy.sh text eol=lf" to .gitattributes, and commit both.`,
    };
  }
  const [interpreter = "", ...rest] = line
    .slice(2)
    .trim()
    .split(/[ \t]+/);
  return checkInterpreter(script, interpreter) ?? checkEnv(script, interpreter, rest, searchPath);
}

function checkInterpreter(script: string, interpreter: string): Problem | null {
  if (interpreter === "") {
    return {
      code: "script_without_interpreter",
      detail: `${script} begins with #! and names no program. Make its first line: #!/usr/bin/env bash`,
    };
  }
  if (kindOf(interpreter) !== "file") {
    return {
      code: "interpreter_missing",
      detail: `${script} is to be run by ${interpreter}, which is not there. Install it, or name another in the first line of the script.`,
    };
  }
  if (!isAllowed(interpreter, constants.X_OK)) {
    return {
      code: "interpreter_not_executable",
      detail: `${script} is to be run by ${interpreter}, which is not executable. Name another program in the first line of the script.`,
    };
  }
  return null;
}

/** `#!/usr/bin/env bash` looks bash up in the PATH. */
function checkEnv(
  script: string,
  interpreter: string,
  rest: readonly string[],
  searchPath: string,
): Problem | null {
  if (!interpreter.endsWith("/env")) return null;
  const program = rest.find((word) => !word.startsWith("-") && !word.includes("="));
  if (program === undefined || program.includes("/")) return null;
  if (findProgram(program, searchPath) !== null) return null;
  return {
    code: "interpreter_missing",
    detail: `${script} is to be run by ${program}, which is not in the PATH. Install it, or name another in the first line of the script.`,
  };
}
