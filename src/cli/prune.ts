import { parseArgs } from "node:util";
import { formatSize } from "../config/size.ts";
import { connectEngine } from "../rollout/engine.ts";
import { locateProject } from "../rollout/locate-project.ts";
import { lockRollout } from "../rollout/lock.ts";
import { RolloutError, rolloutExitCode } from "../rollout/problems.ts";
import { type Pruned, prune } from "../rollout/prune.ts";
import { loadProject } from "../rollout/read-project.ts";
import { rolloutState, stateDirectoryOf } from "../rollout/state.ts";
import { chooseEngine } from "../rollout/swarm/choose-engine.ts";
import { pruneStack } from "../rollout/swarm/prune-stack.ts";
import { loadStack } from "../rollout/swarm/read-stack.ts";

const usage = `Usage: hotpush prune [options]

Removes old images of this compose project or stack: all but those of containers, of the live version and of the
good versions before it. Other projects are not touched.

  --keep <n>           how many good versions before the live one stay (default: 2)
  --directory <path>   the compose project (default: REPO_PATH, else the working directory)
  --file <path>        a compose file; can be given more than once (default: what compose finds)
  --json               the result as one JSON object
  --help
`;

const lockWaitS = 600;

/** `hotpush prune`: says on standard output what was removed. Returns the exit code: 0, 1, or 2 for a wrong command line. */
export async function runPruneCommand(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const values = readOptions(args);
  if (typeof values === "string") {
    process.stderr.write(`${values}\n\n${usage}`);
    return 2;
  }
  if (values.help) {
    process.stdout.write(usage);
    return 0;
  }
  try {
    const pruned = await pruneProject(values, env);
    process.stdout.write(values.json ? `${JSON.stringify(pruned)}\n` : told(pruned));
    return 0;
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    process.stderr.write(`${[error.message, ...error.evidence].join("\n")}\n`);
    return rolloutExitCode(error.code);
  }
}

type Options = Exclude<ReturnType<typeof readOptions>, string>;

function readOptions(args: readonly string[]) {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        keep: { type: "string", default: "2" },
        directory: { type: "string" },
        file: { type: "string", multiple: true },
        json: { type: "boolean" },
        help: { type: "boolean" },
      },
    });
    return /^\d{1,3}$/.test(values.keep) ? values : `--keep is "${values.keep}", not a number of versions.`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Under the roll-out's lock: an image that a roll-out is about to start has no container yet. */
async function pruneProject({ directory, file, keep }: Options, env: NodeJS.ProcessEnv): Promise<Pruned> {
  const engine = connectEngine(env.DOCKER_HOST);
  const projectDirectory = directory ?? env.REPO_PATH ?? process.cwd();
  const target = await locateProject(engine, { projectDirectory, files: file ?? [] });
  const { lockPath, versionsPath } = rolloutState(stateDirectoryOf(env), target.projectDirectory);
  const lock = await lockRollout(lockPath, lockWaitS);
  try {
    const signal = new AbortController().signal;
    const surroundings = { env, signal, lockDescriptor: lock.descriptor, target };
    const request = { engine, versionsPath, keep: Number(keep) };
    if ((await chooseEngine(surroundings)) === "swarm") {
      // The commit only matters for names in the file that are yet to be built.
      const { stack } = await loadStack(surroundings, "0".repeat(12));
      return await pruneStack({ ...request, stack });
    }
    const { project } = await loadProject(surroundings);
    return await prune({ ...request, project });
  } finally {
    await lock.release();
  }
}

function told({ removed, freedBytes }: Pruned): string {
  if (removed.length === 0) return `Nothing to remove; ${formatSize(freedBytes)} of old build cache freed.\n`;
  return `${removed.map((name) => `  removed ${name}\n`).join("")}Freed ${formatSize(freedBytes)}.\n`;
}
