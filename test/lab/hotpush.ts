/** The commands of the roll-out stage as a process of their own, which a test can kill. */
import { runPruneCommand } from "../../src/cli/prune.ts";
import { runRolloutCommand } from "../../src/cli/rollout.ts";

const [command, ...args] = process.argv.slice(2);
const run = command === "prune" ? runPruneCommand : runRolloutCommand;
process.exitCode = await run(args, process.env);
