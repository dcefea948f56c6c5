import { findProgram } from "../platform/find-program.ts";
import { ProblemError } from "../problems.ts";

const tools = [
  { program: "flock", from: "util-linux" },
  { program: "mkfifo", from: "coreutils" },
] as const;

/**
 * Makes sure that the programs are there without which no script can be run safely. Looked for, not run: a process
 * each would make every start longer.
 *
 * @throws ProblemError `tool_missing`
 */
export function checkTools(path: string = process.env.PATH ?? ""): void {
  for (const { program, from } of tools) {
    if (findProgram(program, path) !== null) continue;
    const detail = `${program} is not installed. Install the package ${from}.`;
    throw new ProblemError({ code: "tool_missing", detail });
  }
}
