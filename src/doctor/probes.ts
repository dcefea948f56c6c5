import { serverServices } from "#config/server";
import type { Environment } from "#config/settings";
import { webhookUrlOf } from "#config/values";
import { type ComposeOptions, composeVersion, loadModel } from "#platform/compose";
import type { ComposeModel } from "#platform/compose-model";
import { connectEngine, getJson } from "#platform/docker/engine";
import { defaultDockerHost, dockerSocketPath, isInContainer } from "#platform/docker/mounts";
import { withDotenv } from "#platform/env-file";
import { type GitReader, gitOutput, runGit } from "#platform/git";
import { type GitRemoteUrl, parseGitRemoteUrl, withoutCredentials } from "#platform/git-remote-url";
import type { SystemUser } from "#platform/users";
import { ProblemError } from "#problems";
import { chooseEngine, stackFiles } from "#rollout/stack";
import { ping } from "#send/send";
import type { Server } from "#setup/server";

/** What the remote of the repository answers if it is asked as the service asks: nobody can answer a prompt. */
type RemoteAnswer =
  | { readonly kind: "none"; readonly others: readonly string[] }
  | { readonly kind: "unasked" }
  | { readonly kind: "refs"; readonly url: GitRemoteUrl; readonly refs: ReadonlyMap<string, string> }
  | RemoteFailure;

export interface RemoteFailure {
  readonly kind: "failed";
  readonly url: GitRemoteUrl;
  /** The last lines of git and ssh. */
  readonly lines: string;
}

/** Asks `origin` for its branches. Takes 15 s at most. */
export async function probeRemote(repoPath: string, reader: GitReader): Promise<RemoteAnswer> {
  const options = { ...reader, timeoutMs: 5_000 };
  const remotes = await gitOutput(repoPath, ["remote"], options);
  if (remotes === null) return { kind: "unasked" };
  const names = remotes.split("\n").filter(Boolean);
  if (!names.includes("origin")) return { kind: "none", others: names };
  const url = parseGitRemoteUrl(
    (await gitOutput(repoPath, ["ls-remote", "--get-url", "origin"], options)) ?? "",
  );
  const ending = await runGit(repoPath, ["ls-remote", "origin", "HEAD", "refs/heads/*"], options);
  if (ending.kind !== "exited") return { kind: "failed", url, lines: "it timed out after 5 s" };
  if (ending.code !== 0)
    return { kind: "failed", url, lines: withoutCredentials(ending.lastLines.join("\n")) };
  const rows = ending.output.split("\n").filter(Boolean);
  const refs = rows.map((row) => row.split("\t").reverse() as [string, string]);
  return { kind: "refs", url, refs: new Map(refs) };
}

/** Whether the repository is deployed with compose or as a stack, by the rule of examples/deploy.sh. */
export function hasComposeFile(repoPath: string, env: Environment): boolean {
  // Compose reads `.env` beside its file.
  return stackFiles({ projectDirectory: repoPath, files: [] }, withDotenv(env, repoPath)).length > 0;
}

/** What compose reports of itself and of the project in the repository. */
export type ComposeAnswer =
  | { readonly kind: "no-file" }
  | { readonly kind: "no-compose"; readonly version: null }
  | { readonly kind: "swarm"; readonly version: string }
  | { readonly kind: "invalid"; readonly version: string; readonly lines: readonly string[] }
  | { readonly kind: "model"; readonly version: string; readonly model: ComposeModel };

/**
 * Asks compose for its version and for the project in `repoPath`, as the user of its scripts: compose may be a plugin in the
 * home of that user. Takes 10 s at most.
 */
export async function probeCompose(
  repoPath: string,
  { env, user }: { readonly env: Record<string, string>; readonly user: SystemUser | null },
): Promise<ComposeAnswer> {
  if (!hasComposeFile(repoPath, env)) return { kind: "no-file" };
  const timeoutMs = 10_000;
  const target = { projectDirectory: repoPath, files: [] };
  const signal = AbortSignal.timeout(timeoutMs);
  const options: ComposeOptions = { env, user, target, signal, lockDescriptor: undefined };
  const version = await composeVersion(options, timeoutMs);
  if (version === null) return { kind: "no-compose", version };
  try {
    if ((await chooseEngine(options)) === "swarm") return { kind: "swarm", version };
    return { kind: "model", version, model: await loadModel(options) };
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    const { evidence = [] } = error.problem;
    return { kind: "invalid", version, lines: evidence.length > 0 ? evidence : [error.message] };
  }
}

/**
 * Asks the engine at DOCKER_HOST, or at its usual socket, for its versions. Takes 4 s at most.
 *
 * @returns with `rootPath`, its directory on the host, which has the images; or the system's `code` (null for an address that is
 * no socket), `socketPath` (null likewise) and a sentence
 */
export async function probeEngine(env: Environment) {
  const dockerHost = env.DOCKER_HOST || defaultDockerHost;
  try {
    const engine = connectEngine(dockerHost, 4_000);
    const [{ Version: version, ApiVersion: apiVersion }, { DockerRootDir: rootPath }] = await Promise.all([
      getJson<{ readonly Version: string; readonly ApiVersion: string }>(engine, "/version"),
      getJson<{ readonly DockerRootDir: string }>(engine, "/info"),
    ]);
    return { kind: "answers", engine, version, apiVersion, rootPath } as const;
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    const { code = null } = (error.cause ?? {}) as { readonly code?: string };
    const socketPath = dockerSocketPath(dockerHost);
    return { kind: "failed", code, text: error.message, socketPath } as const;
  }
}

/**
 * Sends a signed ping to the service's port, on a server to Caddy's.
 *
 * @returns what answers there; `acceptsSecret` is null if there is no secret to try
 */
export async function probeService(
  server: Server | null,
  host: string,
  port: number,
  secret: string | null,
  project: string | null,
) {
  const bound = host === "0.0.0.0" || host === "localhost" ? "127.0.0.1" : host === "::" ? "::1" : host;
  const caddy = isInContainer() ? serverServices.caddy : `127.0.0.1:${server?.env.HTTP_PORT || 80}`;
  const direct = `${bound.includes(":") ? `[${bound}]` : bound}:${port}`;
  const url = `http://${server === null ? direct : caddy}`;
  const hook = webhookUrlOf(new URL(`${url}/webhook`), project);
  const { outcome } = await ping(hook, secret ?? "none", server?.files ?? null);
  if (outcome === "unreachable") return { kind: "nothing" } as const;
  if (outcome === "not-hotpush" || outcome === "redirected") return { kind: "another" } as const;
  return { kind: "hotpush", acceptsSecret: secret === null ? null : outcome === "pong", url } as const;
}
