import { join } from "node:path";
import { compareVersions } from "../platform/compare-versions.ts";
import { composeVersion } from "../platform/compose/ask-compose.ts";
import type { ComposePort, ComposeService } from "../platform/compose/model.ts";
import { neededCompose } from "../platform/compose/program.ts";
import { neededApi } from "../platform/docker/engine.ts";
import { outputOf, runCommand } from "../platform/run-command.ts";
import { ownRoot } from "./own-image.ts";
import type { SetupProject } from "./project.ts";
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
 * Asks compose for the services of a project.
 *
 * @throws SetupError if the project has no compose file, there is no compose, it or the engine is too old, it rejects the
 * files, or one of the services is a Hotpush: two would both deploy every push
 */
export async function readServices(
  { root, composeFiles }: Pick<SetupProject, "root" | "composeFiles">,
  env: NodeJS.ProcessEnv,
): Promise<SetupServices> {
  if (composeFiles.length === 0) {
    throw new SetupError(
      `There is no compose file in ${root}, and Hotpush sets up projects that run with docker compose. To deploy other projects, run Hotpush as a service of systemd: ${join(ownRoot, "examples/systemd/hotpush.service")} begins with the commands.`,
    );
  }
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
  if (!Object.hasOwn(services, "hotpush")) return services;
  throw new SetupError(
    "Your compose file has a service called hotpush, so this project is set up by hand. To let init do it, remove that service and its proxy, if it has one, and run this again; to check the project as it is: hotpush doctor",
  );
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
