import { type Command, InvalidArgumentError } from "commander";
import { formatSize } from "../config/size.ts";
import { connectEngine } from "../platform/docker/engine.ts";
import { ProblemError } from "../problems.ts";
import { locateProject } from "../rollout/compose/locate-project.ts";
import { findRolloutEngine } from "../rollout/engine.ts";
import { keptByDefault, type Pruned } from "../rollout/images/prune.ts";
import { lockRollout } from "../rollout/lock.ts";
import { refuseOtherState, rolloutState, stateDirectoryOf } from "../rollout/state.ts";
import { another, newCommand, refuse, type Surroundings } from "./command.ts";

const lockWaitS = 600;

interface Options {
  readonly keep: number;
  readonly directory?: string;
  readonly file?: readonly string[];
  readonly json?: boolean;
}

/** `hotpush prune`: says on standard output what was removed. */
export function makePruneCommand({ env, finish }: Surroundings): Command {
  const summary =
    "Removes old images of this compose project or stack: all but those of containers, of the live version and of the good versions before it. Other projects are not touched.";
  return newCommand("prune", summary, [
    "hotpush prune            the live version and the 2 good ones before it stay",
    "hotpush prune --keep 5   as for a project that is often rolled back",
  ])
    .option("--keep <n>", "how many good versions before the live one stay", versionCount, keptByDefault)
    .option("--directory <path>", "the compose project (default: REPO_PATH, else the working directory)")
    .option("--file <path>", "a compose file, can be repeated (default: what compose finds)", another)
    .option("--json", "the result as one JSON object")
    .action(async (options: Options) => finish(await runPrune(options, env)));
}

function versionCount(text: string): number {
  if (/^\d{1,3}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Not a number of versions.");
}

async function runPrune(options: Options, env: NodeJS.ProcessEnv): Promise<number> {
  try {
    const pruned = await pruneProject(options, env);
    process.stdout.write(options.json ? `${JSON.stringify(pruned)}\n` : told(pruned));
    return 0;
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    const { detail, evidence = [] } = error.problem;
    return refuse([detail, ...evidence.map((line) => `    ${line}`)].join("\n"));
  }
}

/** Under the roll-out's lock: an image that a roll-out is about to start has no container yet. */
async function pruneProject({ directory, file, keep }: Options, env: NodeJS.ProcessEnv): Promise<Pruned> {
  const engine = connectEngine(env.DOCKER_HOST);
  const projectDirectory = directory ?? env.REPO_PATH ?? process.cwd();
  const target = await locateProject(engine, { projectDirectory, files: file ?? [] });
  await refuseOtherState(engine, target.projectDirectory, env);
  const { lockPath, versionsPath } = rolloutState(stateDirectoryOf(env), target.projectDirectory);
  const lock = await lockRollout(lockPath, lockWaitS);
  try {
    const signal = new AbortController().signal;
    const options = { env, signal, lockDescriptor: lock.descriptor, target };
    const { prune } = await findRolloutEngine(options);
    return await prune({ engine, options, versionsPath, keep });
  } finally {
    await lock.release();
  }
}

function told({ removed, freedBytes }: Pruned): string {
  if (removed.length === 0) return `Nothing to remove; ${formatSize(freedBytes)} of old build cache freed.\n`;
  return `${removed.map((name) => `  removed ${name}\n`).join("")}Freed ${formatSize(freedBytes)}.\n`;
}
