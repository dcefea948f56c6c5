/**
 * The command line alone, without the service, as a process that a test can kill. It kills itself before step number
 * KILLED_BEFORE of `init` (at its end if there is no such step), or when it prints what matches KILLED_AT.
 */
import { runCommandLine } from "../../src/cli/command-line.ts";
import type { SetupStep } from "../../src/setup/init.ts";

const { KILLED_BEFORE: step, KILLED_AT: printed } = process.env;
const kill = () => void process.kill(process.pid, "SIGKILL");
if (step !== undefined) {
  const { setupSteps } = await import("../../src/setup/init.ts");
  (setupSteps as SetupStep[]).splice(Number(step), 0, { name: "kill", run: kill });
}
if (printed !== undefined) {
  const write = process.stderr.write.bind(process.stderr);
  process.stderr.write = (text: string | Uint8Array) => {
    // A moment later, compose has begun its work.
    if (new RegExp(printed).test(String(text))) setTimeout(kill, Number(process.env.KILLED_AFTER_MS));
    return write(text);
  };
}
process.exitCode = await runCommandLine(process.argv.slice(2), process.env);
