import { type Command, InvalidArgumentError } from "commander";
import { connectEngine } from "../platform/docker/engine.ts";
import { lowerPriority } from "../platform/lower-priority.ts";
import { ProblemError } from "../problems.ts";
import { locateProject } from "../rollout/compose/locate-project.ts";
import { findRolloutEngine } from "../rollout/engine.ts";
import { reportJson, reportText } from "../rollout/report/format.ts";
import { type Report, reportFailure } from "../rollout/report/report.ts";
import type { RolloutRequest } from "../rollout/request.ts";
import { refuseOtherState, rolloutState, stateDirectoryOf } from "../rollout/state.ts";
import { another, newCommand, type Surroundings } from "./command.ts";

interface Options {
  readonly directory?: string;
  readonly file?: readonly string[];
  readonly commit?: string;
  readonly live?: string;
  readonly build: boolean;
  readonly pull?: boolean;
  readonly back?: boolean;
  readonly to?: string;
  readonly lockWait: number;
  readonly json?: boolean;
}

/** `hotpush rollout`: reports on standard output. Its exit code is 0 where the new version serves, 1 where the old one does. */
export function makeRolloutCommand({ env, finish }: Surroundings): Command {
  const summary =
    "Replaces the containers of a compose project by new ones, with no request dropped. A stack file that says `x-hotpush: { engine: swarm }` (or HOTPUSH_ENGINE=swarm) is rolled out on a Docker Swarm.\n\nWithout services: all whose image or configuration changed, in the order of their dependencies.";
  return newCommand("rollout", summary, [
    "hotpush rollout              everything that changed",
    "hotpush rollout app --json   only the service app; events as JSON",
    "hotpush rollout --back       the previous good version, without the service",
  ])
    .argument("[services...]")
    .option("--directory <path>", "the compose project (default: REPO_PATH, else the working directory)")
    .option("--file <path>", "a compose file, can be repeated (default: what compose finds)", another)
    .option(
      "--commit <commit>",
      "what images are named after (default: what is checked out, outside of git DEPLOY_COMMIT)",
    )
    .option("--live <path>", "the directory of the live files (default: what is mounted at /run/live)")
    .option("--no-build", "take the images that are there")
    .option("--pull", "pull the images that are not built here")
    .option("--back", "go back to the previous good version, without a build")
    .option("--to <commit>", "go back to the good version of this commit")
    .option("--lock-wait <s>", "seconds to wait for another roll-out", seconds, 600)
    .option("--json", "events, one JSON object a line")
    .action(async (services: string[], options: Options, command: Command) => {
      if (services.length > 0 && goesBack(options))
        command.error("error: A version is gone back to as a whole: name no services beside --back or --to.");
      finish(await runRollout(services, options, env));
    });
}

function goesBack({ back, to }: Options): boolean {
  return back === true || to !== undefined;
}

function seconds(text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Not a number of seconds.");
}

async function runRollout(
  services: readonly string[],
  options: Options,
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const write = (text: string) => process.stdout.write(text);
  const report = options.json ? reportJson(write) : reportText(write);
  lowerPriority();
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  process.once("SIGTERM", stop).once("SIGINT", stop);
  try {
    const request = await requestOf(services, options, env, report, stopping.signal);
    const engine = await findRolloutEngine(request);
    const ending = goesBack(options)
      ? await engine.rollBack(request, options.to)
      : await engine.rollOut(request);
    return ending.kind === "succeeded" ? 0 : 1;
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    reportFailure(report, error.problem);
    return 1;
  } finally {
    process.removeListener("SIGTERM", stop).removeListener("SIGINT", stop);
  }
}

async function requestOf(
  services: readonly string[],
  options: Options,
  env: NodeJS.ProcessEnv,
  report: Report,
  signal: AbortSignal,
): Promise<RolloutRequest> {
  const engine = connectEngine(env.DOCKER_HOST);
  const projectDirectory = options.directory ?? env.REPO_PATH ?? process.cwd();
  const target = await locateProject(engine, { projectDirectory, files: options.file ?? [] });
  await refuseOtherState(engine, target.projectDirectory, env);
  return {
    engine,
    target,
    env,
    services,
    commit: options.commit,
    liveDirectory: options.live ?? env.HOTPUSH_LIVE_PATH,
    ...rolloutState(stateDirectoryOf(env), target.projectDirectory),
    lockWaitS: options.lockWait,
    withBuild: options.build,
    withPull: options.pull ?? false,
    report,
    signal,
  };
}
