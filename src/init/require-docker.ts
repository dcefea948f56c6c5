import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { compareVersions } from "../platform/compare-versions.ts";
import { neededCompose } from "../platform/compose/program.ts";
import { neededApi } from "../platform/docker/engine.ts";
import { SetupError } from "./setup-error.ts";

const composeTimeoutMs = 20_000;
/** Of an engine of which the answer is not needed. */
const engineTimeoutMs = 5_000;
const run = promisify(execFile);

/**
 * Sees to it that compose, and the engine where one answers, are new enough for what is going to be set up.
 *
 * @throws SetupError where there is no compose, or one of the two is too old
 */
export async function requireDocker(env: NodeJS.ProcessEnv): Promise<void> {
  await requireCompose(env);
  const engine = await readEngine(env);
  if (engine === null || compareVersions(engine.apiVersion, neededApi) >= 0) return;
  throw new SetupError(
    `Docker is ${engine.version} here (API ${engine.apiVersion}); 25 or newer is needed. Install a newer one: https://docs.docker.com/engine/install/`,
  );
}

async function requireCompose(env: NodeJS.ProcessEnv): Promise<void> {
  const version = await ask(["compose", "version", "--short"], env, composeTimeoutMs);
  if (version === null) {
    throw new SetupError(
      "This project has a compose file, but there is no docker compose here. Run this on the server; or install it: https://docs.docker.com/engine/install/",
    );
  }
  if (compareVersions(version, neededCompose) >= 0) return;
  throw new SetupError(
    `Docker Compose is ${version} here; ${neededCompose} or newer is needed. Install a newer one: https://docs.docker.com/compose/install/`,
  );
}

/** null where none answers: the project can be set up before the engine runs. */
async function readEngine(env: NodeJS.ProcessEnv) {
  const argv = ["version", "--format", "{{.Server.Version}} {{.Server.APIVersion}}"];
  const answer = await ask(argv, env, engineTimeoutMs);
  const [, version, apiVersion] = /^(\S+) (\d+\.\d+)$/.exec(answer ?? "") ?? [];
  return version === undefined || apiVersion === undefined ? null : { version, apiVersion };
}

/** What docker prints; null where it fails. */
async function ask(
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
  timeoutMs: number,
): Promise<string | null> {
  try {
    const { stdout } = await run("docker", argv, { env, timeout: timeoutMs });
    return stdout.trim();
  } catch {
    return null;
  }
}
