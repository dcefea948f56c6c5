/**
 * The command line alone, without the service, as a process that a test can kill. It kills itself before step number
 * KILLED_BEFORE of `init` (at its end if there is no such step).
 */
import { runCommandLine } from "../../src/cli/command-line.ts";

const { KILLED_BEFORE: step } = process.env;
const kill = () => void process.kill(process.pid, "SIGKILL");
if (step !== undefined) {
  const { setupSteps } = await import("../../src/setup/init.ts");
  (setupSteps as (typeof setupSteps)[number][]).splice(Number(step), 0, ["kill", kill]);
}
process.exitCode = await runCommandLine(process.argv.slice(2), process.env);
