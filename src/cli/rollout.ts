import { parseArgs } from "node:util";
import { connectEngine } from "../rollout/engine.ts";
import { locateProject } from "../rollout/locate-project.ts";
import { RolloutError, rolloutExitCode } from "../rollout/problems.ts";
import type { Report } from "../rollout/report.ts";
import { reportJson } from "../rollout/report-json.ts";
import { reportText } from "../rollout/report-text.ts";
import type { RolloutRequest } from "../rollout/request.ts";
import { rollBack } from "../rollout/rollback.ts";
import { rollOut } from "../rollout/rollout.ts";
import { rolloutState, stateDirectoryOf } from "../rollout/state.ts";
import { chooseEngine } from "../rollout/swarm/choose-engine.ts";
import { rollOutStack } from "../rollout/swarm/rollout.ts";

const usage = `Usage: hotpush rollout [options] [service…]

Replaces the containers of a compose project by new ones, with no request dropped. A stack file that says
\`x-hotpush: { engine: swarm }\` (or HOTPUSH_ENGINE=swarm) is rolled out on a Docker Swarm.
Without services: all whose image or configuration changed, in the order of their dependencies.

  --directory <path>   the compose project (default: REPO_PATH, else the working directory)
  --file <path>        a compose file; can be given more than once (default: what compose finds)
  --commit <commit>    what is deployed (default: DEPLOY_COMMIT, else what is checked out)
  --live <path>        the directory of the live files (default: what the compose file mounts at /run/live)
  --no-build           take the images that are there
  --pull               pull the images that are not built here
  --back               go back to the previous good version, without a build
  --to <commit>        go back to the good version of this commit
  --lock-wait <s>      how long to wait for another roll-out (default: 600)
  --json               events, one JSON object a line
  --help
`;

/**
 * `hotpush rollout`: reports on standard output.
 *
 * @returns the exit code: 0 where the new version serves, 1 where the old one still does, 2 for a wrong command line
 */
export async function runRolloutCommand(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const options = readOptions(args);
  if (typeof options === "string") {
    process.stderr.write(`${options}\n\n${usage}`);
    return 2;
  }
  if (options.values.help) {
    process.stdout.write(usage);
    return 0;
  }
  const write = (text: string) => process.stdout.write(text);
  const report = options.values.json ? reportJson(write) : reportText(write);
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  process.once("SIGTERM", stop).once("SIGINT", stop);
  try {
    const request = await requestOf(options, env, report, stopping.signal);
    const { back, to } = options.values;
    const roll = (await chooseEngine(request)) === "swarm" ? rollOutStack : rollOut;
    const ending = back || to !== undefined ? await rollBack(request, to, roll) : await roll(request);
    return ending.kind === "succeeded" ? 0 : rolloutExitCode(ending.code);
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    report({ event: "failed", code: error.code, detail: error.message, evidence: error.evidence });
    return rolloutExitCode(error.code);
  } finally {
    process.removeListener("SIGTERM", stop).removeListener("SIGINT", stop);
  }
}

type Options = Exclude<ReturnType<typeof readOptions>, string>;

function readOptions(args: readonly string[]) {
  try {
    const parsed = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        directory: { type: "string" },
        file: { type: "string", multiple: true },
        commit: { type: "string" },
        live: { type: "string" },
        "no-build": { type: "boolean" },
        pull: { type: "boolean" },
        back: { type: "boolean" },
        to: { type: "string" },
        "lock-wait": { type: "string" },
        json: { type: "boolean" },
        help: { type: "boolean" },
      },
    });
    const wait = parsed.values["lock-wait"];
    return wait === undefined || /^\d{1,6}$/.test(wait)
      ? parsed
      : `--lock-wait is "${wait}", not a number of seconds.`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

async function requestOf(
  { values, positionals }: Options,
  env: NodeJS.ProcessEnv,
  report: Report,
  signal: AbortSignal,
): Promise<RolloutRequest> {
  const engine = connectEngine(env.DOCKER_HOST);
  const projectDirectory = values.directory ?? env.REPO_PATH ?? process.cwd();
  const target = await locateProject(engine, { projectDirectory, files: values.file ?? [] });
  return {
    engine,
    target,
    env,
    services: positionals,
    commit: values.commit ?? env.DEPLOY_COMMIT,
    liveDirectory: values.live ?? env.HOTPUSH_LIVE_PATH,
    ...rolloutState(stateDirectoryOf(env), target.projectDirectory),
    lockWaitS: Number(values["lock-wait"] ?? 600),
    withBuild: !values["no-build"],
    withPull: values.pull ?? false,
    report,
    signal,
  };
}
