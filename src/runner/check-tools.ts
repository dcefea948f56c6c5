import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { ProblemError } from "../problems.ts";

const tools = [
  { command: ["flock", "--version"], from: "util-linux" },
  { command: ["mkfifo", "--version"], from: "coreutils" },
] as const;

/**
 * Makes sure that the programs are there without which no script can be run safely.
 *
 * @throws ProblemError `tool_missing`
 */
export async function checkTools(): Promise<void> {
  await Promise.all(
    tools.map(async ({ command: [program, ...args], from }) => {
      try {
        await promisify(execFile)(program, args);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") return;
        const detail = `${program} is not installed. Install the package ${from}.`;
        throw new ProblemError({ code: "tool_missing", detail }, error);
      }
    }),
  );
}
