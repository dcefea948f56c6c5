import { composeVersion, loadModel } from "../../platform/compose/ask-compose.ts";
import type { ComposeModel } from "../../platform/compose/model.ts";
import type { ComposeOptions } from "../../platform/compose/run-compose.ts";
import { defaultDockerHost, dockerSocketPath } from "../../platform/docker/docker-host.ts";
import { connectEngine, type Engine, getJson } from "../../platform/docker/engine.ts";
import { withDotenv } from "../../platform/env-file.ts";
import type { SystemUser } from "../../platform/users.ts";
import { ProblemError } from "../../problems.ts";
import { chooseEngine } from "../../rollout/swarm/choose-engine.ts";
import { stackFiles } from "../../rollout/swarm/stack-file.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Whether the repository is deployed with compose or as a stack, by the rule of examples/deploy.sh. */
export function hasComposeFile(repoPath: string, env: Environment): boolean {
  const target = { projectDirectory: repoPath, files: [] };
  try {
    // Compose reads `.env` beside its file.
    return stackFiles(target, withDotenv(env, repoPath)).length > 0;
  } catch {
    return stackFiles(target, env).length > 0; // Another check reports a `.env` that cannot be read.
  }
}

/** What compose reports of itself and of the project in the repository. */
export type ComposeAnswer =
  | { readonly kind: "no-file" }
  | { readonly kind: "no-compose" }
  | { readonly kind: "swarm"; readonly version: string }
  | { readonly kind: "invalid"; readonly version: string; readonly lines: readonly string[] }
  | { readonly kind: "model"; readonly version: string; readonly model: ComposeModel };

const composeTimeoutMs = 10_000;

/**
 * Asks compose for its version and for the project in `repoPath`, as the user of its scripts: compose may be a plugin in the
 * home of that user. Takes 10 s at most.
 */
export async function probeCompose(
  repoPath: string,
  { env, user }: { readonly env: Record<string, string>; readonly user: SystemUser | null },
): Promise<ComposeAnswer> {
  if (!hasComposeFile(repoPath, env)) return { kind: "no-file" };
  const options: ComposeOptions = {
    ...{ env, user },
    signal: AbortSignal.timeout(composeTimeoutMs),
    target: { projectDirectory: repoPath, files: [] },
    lockDescriptor: undefined,
  };
  const version = await composeVersion(options, composeTimeoutMs);
  if (version === null) return { kind: "no-compose" };
  try {
    if ((await chooseEngine(options)) === "swarm") return { kind: "swarm", version };
    return { kind: "model", version, model: await loadModel(options) };
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    const { evidence = [] } = error.problem;
    return { kind: "invalid", version, lines: evidence.length > 0 ? evidence : [error.message] };
  }
}

/** What the Docker engine reports of itself. */
export type EngineAnswer =
  | {
      readonly kind: "answers";
      readonly engine: Engine;
      readonly version: string;
      readonly apiVersion: string;
      /** Its directory on the host; it has the images. */
      readonly rootPath: string;
    }
  | EngineFailure;

export interface EngineFailure {
  readonly kind: "failed";
  /** The system's code, such as EACCES; "address" if DOCKER_HOST is not supported. */
  readonly code: string;
  readonly text: string;
  readonly socketPath: string | null;
}

const engineTimeoutMs = 4_000;

/** Asks the engine at DOCKER_HOST, or at its usual socket, for its versions. Takes 4 s at most. */
export async function probeEngine(env: Environment): Promise<EngineAnswer> {
  const dockerHost = env.DOCKER_HOST || defaultDockerHost;
  try {
    const engine = connectEngine(dockerHost, engineTimeoutMs);
    const [{ Version: version, ApiVersion: apiVersion }, { DockerRootDir: rootPath }] = await Promise.all([
      getJson<{ readonly Version: string; readonly ApiVersion: string }>(engine, "/version"),
      getJson<{ readonly DockerRootDir: string }>(engine, "/info"),
    ]);
    return { kind: "answers", engine, version, apiVersion, rootPath };
  } catch (error) {
    if (!(error instanceof ProblemError) && !(error instanceof SyntaxError)) throw error;
    const cause = error.cause as NodeJS.ErrnoException | undefined;
    const socketPath = dockerSocketPath(dockerHost);
    const isSupported = socketPath !== null || dockerHost.startsWith("tcp://");
    const code = cause?.code ?? (isSupported ? "answer" : "address");
    return { kind: "failed", code, text: error.message, socketPath };
  }
}
