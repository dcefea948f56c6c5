import { connectEngine, defaultDockerHost, type Engine } from "../../platform/docker/engine.ts";
import { ProblemError } from "../../problems.ts";

/** What the Docker engine says of itself. */
export type EngineAnswer =
  | {
      readonly kind: "answers";
      readonly engine: Engine;
      readonly version: string;
      readonly apiVersion: string;
      /** Where it keeps its images, on the host. */
      readonly rootPath: string;
    }
  | {
      readonly kind: "failed";
      /** Of the system, such as EACCES; "address" where DOCKER_HOST is none that is spoken. */
      readonly code: string;
      readonly text: string;
      readonly socketPath: string | null;
    };

const answerTimeoutMs = 4_000;

/** Asks the engine at DOCKER_HOST, or at its usual socket, for its versions. Takes 4 s at most. */
export async function readEngine(env: Readonly<Record<string, string | undefined>>): Promise<EngineAnswer> {
  const dockerHost = env.DOCKER_HOST || defaultDockerHost;
  try {
    const engine = connectEngine(dockerHost, answerTimeoutMs);
    const ask = async (path: string) => JSON.parse((await engine.get(path)).toString());
    const [{ Version, ApiVersion }, { DockerRootDir }] = await Promise.all([ask("/version"), ask("/info")]);
    return { kind: "answers", engine, version: Version, apiVersion: ApiVersion, rootPath: DockerRootDir };
  } catch (error) {
    if (!(error instanceof ProblemError) && !(error instanceof SyntaxError)) throw error;
    const cause = error.cause as NodeJS.ErrnoException | undefined;
    const socketPath = dockerHost.startsWith("unix://") ? dockerHost.slice("unix://".length) : null;
    const code =
      cause?.code ?? (socketPath === null && !dockerHost.startsWith("tcp://") ? "address" : "answer");
    return { kind: "failed", code, text: error.message, socketPath };
  }
}
