import { compareVersions } from "../platform/compare-versions.ts";
import { composeVersion } from "../platform/compose/ask-compose.ts";
import type { ComposePort, ComposeService } from "../platform/compose/model.ts";
import { neededCompose } from "../platform/compose/program.ts";
import { neededApi } from "../platform/docker/engine.ts";
import { outputOf, runCommand } from "../platform/run-command.ts";
import { SetupError } from "./setup-error.ts";

/** The services of a compose project, as compose itself reads its files, without those that Hotpush adds. */
export type SetupServices = Readonly<Record<string, SetupService>>;

export interface SetupService extends ComposeService {
  readonly ports?: readonly (ComposePort & { readonly host_ip?: string; readonly protocol?: string })[];
}

const versionTimeoutMs = 20_000;
const configTimeoutMs = 60_000;
/** Shorter: set-up goes on without an answer of the engine. */
const engineTimeoutMs = 5_000;

/**
 * Asks compose for the services of the project in `root`.
 *
 * @param composeFiles absolute paths, in order
 * @throws SetupError if there is no compose, it or the engine is too old, or it rejects the files
 */
export async function readServices(
  root: string,
  composeFiles: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<SetupServices> {
  await requireCompose(env);
  await requireEngine(env);
  const files = composeFiles.flatMap((file) => ["--file", file]);
  const ending = await runCommand({
    argv: ["docker", "compose", "--project-directory", root, ...files, "config", "--format", "json"],
    cwd: root,
    env,
    timeoutMs: configTimeoutMs,
  });
  if (ending.kind !== "exited" || ending.code !== 0) {
    const reason = ending.lastLines.findLast((line) => line.trim() !== "") ?? ending.kind;
    throw new SetupError(`Compose cannot read your project. It says: ${reason.trim()}`);
  }
  const { services }: { readonly services: SetupServices } = JSON.parse(ending.output);
  return services;
}

async function requireCompose(env: NodeJS.ProcessEnv): Promise<void> {
  const version = await composeVersion({ env }, versionTimeoutMs);
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

/** An engine that does not answer passes: the project can be set up before it runs. */
async function requireEngine(env: NodeJS.ProcessEnv): Promise<void> {
  const format = "{{.Server.Version}} {{.Server.APIVersion}}";
  const argv = ["docker", "version", "--format", format] as const;
  const answer = await outputOf(argv, { env, timeoutMs: engineTimeoutMs });
  const [, version, apiVersion] = /^(\S+) (\d+\.\d+)$/.exec(answer ?? "") ?? [];
  if (apiVersion === undefined || compareVersions(apiVersion, neededApi) >= 0) return;
  throw new SetupError(
    `Docker is ${version} here (API ${apiVersion}); 25 or newer is needed. Install a newer one: https://docs.docker.com/engine/install/`,
  );
}
