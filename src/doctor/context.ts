import { constants, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { callRun } from "#calls/client";
import type { ProjectReading } from "#config/project-files";
import { serverCommands, serverServices } from "#config/server";
import { loadConfig } from "#config/service";
import { type Environment, readVariables, variables } from "#config/settings";
import { webhookUrl, webhookUrlOf } from "#config/values";
import { type ComposeOptions, composeVersion, loadModel } from "#platform/compose";
import { imageDirectories } from "#platform/docker/containers";
import { connectEngine, dockerSocketPath, getJson, isInContainer } from "#platform/docker/engine";
import { parseEnvFile, withDotenv } from "#platform/env-file";
import { isAllowed, kindOf, ownUid } from "#platform/files";
import { controllerOf } from "#platform/foreign-files";
import {
  type GitReader,
  gitOutput,
  isRemoteName,
  parseGitRemoteUrl,
  remoteOf,
  runGit,
  withoutCredentials,
} from "#platform/git";
import { runAs } from "#platform/run-command";
import { quote } from "#platform/ssh";
import { ProblemError } from "#problems";
import { chooseEngine, stackFiles } from "#rollout/locate-project";
import { withSourcesReadOnly } from "#rollout/tracked-sources";
import { childEnvironment, ownerOf } from "#runner/script";
import { ping } from "#send/send";
import type { Server } from "#setup/server";
import { type Finding, type Fix, problem } from "./finding.ts";

/** A row of the doctor's table: what it claims, how it finds out, and how what is wrong is fixed. */
export interface Check {
  /** Names it in the report, in the JSON and in docs/troubleshooting.md. */
  readonly id: string;
  /** With several projects: about the service, each project (the default), or both. `server`: only as `hotpush init` sets one up. */
  readonly about?: "service" | "project" | "both" | "server";
  readonly claim: string;
  /** What the printed fix does. A test runs it, and then the check passes. */
  readonly fix: string;
  readonly probe: (context: DoctorContext) => Finding | Promise<Finding>;
}

/** The service's settings, their file, and how to change one there. */
export interface Settings {
  readonly env: Environment;
  /** The file with settings, whether it exists or not. */
  readonly file: string;
  /** Why the file is not read, or null. */
  readonly fault: Finding | null;
  /** Gives variable `name` the value `text`, which a shell expands if it is in double quotes. */
  readonly set: (name: string, text: string) => Fix;
}

/**
 * Reads the settings as the service does: from the file, below the environment `env`, which wins. The file is `named`, else
 * `.env` in `directory`, else the one of docs/set-up.md, "Under systemd", if it exists. Root reads none of the latter two if another
 * user decides about it: git and compose run by its variables.
 */
export function readSettings(env: NodeJS.ProcessEnv, directory: string, named?: string): Settings {
  const dotenv = join(directory, ".env");
  const byHand = "/etc/hotpush.env";
  const file = named ?? (!existsSync(dotenv) && existsSync(byHand) ? byHand : dotenv);
  const kind = kindOf(file);
  const isForeign = named === undefined && kind !== "missing" && controllerOf(file) !== null;
  const isText = kind === "file" || kind === "other";
  const isRead = isText && !isForeign && isAllowed(file, constants.R_OK);
  const values = isRead ? parseEnvFile(readFileSync(file, "utf8")) : {};
  return {
    env: { ...values, ...env },
    file,
    fault: isRead || kind === "missing" ? null : unreadFault(file, kind, isForeign, env),
    set(name, text) {
      // A unit, a compose file or a shell has set it: the process cannot know which.
      if (env[name] !== undefined)
        return { change: `${name}=${text} in the environment of the service, which wins over its file` };
      if (isForeign) return { change: `${name}=${text} in ${file}, as its owner` };
      const path = quote(file);
      // A file that is there keeps its mode: `hotpush front` reads that of a project by its group.
      return `(umask 077; touch ${path}) && sed -i -e '/^${name}=/d' -e '$a\\' ${path} && printf '${name}=%s\\n' ${text} >> ${path}`;
    },
  };
}

function unreadFault(file: string, kind: string, isForeign: boolean, env: NodeJS.ProcessEnv): Finding | null {
  const readable = `chown ${ownUid()} ${quote(file)} && chmod u+rw ${quote(file)}`;
  if (kind === "directory") return problem(`${file} is a directory, and not a file with settings.`);
  if (!isForeign) return problem(`${file} cannot be read.`, readable);
  // A service that has all in its environment, as in a container, needs no file.
  const isGiven = env.WEBHOOK_SECRET ?? env.WEBHOOK_SECRET_FILE ?? env.PROJECTS_PATH;
  const text = `${file} is another user's to change, so root does not read it. Run the doctor as that user.`;
  return isGiven === undefined ? problem(text) : null;
}

/** What the checks look at. */
export type DoctorContext = ReturnType<typeof makeDoctorContext>;

/**
 * Reads the settings leniently: a value that cannot be used has a check of its own, and its default stands in here. The
 * slow probes run at most once, when the first check asks for their answer.
 *
 * @param givenUrl the webhook's address from the command line
 * @param server the server that the service belongs to, if `hotpush init` has set one up
 * @param reading what the file of a project says, if there are several
 */
export function makeDoctorContext(
  settings: Settings,
  givenUrl: string | null,
  server: Server | null = null,
  reading: ProjectReading | null = null,
) {
  const { env } = settings;
  const project = reading?.name ?? null;
  const values = readVariables(variables, env, []);
  const value = <Name extends keyof typeof variables>(name: Name) =>
    values[name] ?? readVariables(variables, { ...env, [name]: "" }, [])[name];
  const repoPath = value("REPO_PATH");
  const statePath = value("STATE_PATH");
  const { secret, faults, warnings } = readConfig(env, reading);
  /** The user that the script will run as; null: this one. */
  const user = reading === null ? null : ownerOf(repoPath, env.DOCKER_HOST);
  const known = webhookUrl(givenUrl ?? env.WEBHOOK_URL ?? "");
  /** The environment that the script will get. */
  const scriptSecrets = reading?.project?.scriptSecrets ?? {};
  const scriptEnv = childEnvironment({
    env,
    deployEnv: value("DEPLOY_ENV"),
    repoPath,
    user,
    scriptSecrets,
  });
  const asScript = { env: scriptEnv, user };
  return {
    settings,
    /** Where the git host sends to; null: that is not known. On a server, the site of a project passes it on to its own path. */
    webhook: known && webhookUrlOf(known, server === null ? project : null),
    isUrlGiven: givenUrl !== null,
    server,
    /** What starts the server. One that was set up by hand is started as docs/set-up.md says. */
    start: server ? serverCommands(server.files).start : undefined,
    repoPath,
    statePath,
    scriptEnv,
    user,
    /** Has the user of the scripts run `command`: root has another home, and git does not trust it in their checkout. */
    asUser(command: string) {
      if (user === null) return command;
      const { name, home } = user;
      const nameless = `${runAs(user).join(" ")} env HOME=${quote(home)} sh`;
      const become = name === null ? nameless : `runuser --pty ${name} -s /bin/sh`;
      return `${become} -c ${quote(command)}`;
    },
    value,
    secret,
    faults,
    warnings,
    /** null: the only project, or the service as a whole. */
    project,
    projectsPath: value("PROJECTS_PATH") || null,
    /** The trimmed output of git in the repository, as the script would run it; null if it fails. */
    readGit: (...args: readonly string[]) => gitOutput(repoPath, args, asScript),
    remote: once(() => probeRemote(repoPath, asScript)),
    compose: once(() => probeCompose(repoPath, asScript)),
    engine: once(() => probeEngine(scriptEnv)),
    service: once(() => probeService(server, value("WEBHOOK_HOST"), value("WEBHOOK_PORT"), secret, project)),
    /** What the process that deploys answers, or why it does not. */
    status: once(() =>
      callRun(statePath, "status", { project: project ?? undefined }).catch((error: Error) => error),
    ),
  };
}

/** Every line that is refused, and every warning; the secret is null if none is usable. */
type ReadConfig = Pick<ProjectReading, "faults" | "warnings"> & { readonly secret: string | null };

function readConfig(env: Environment, reading: ProjectReading | null): ReadConfig {
  if (reading !== null)
    return { ...reading, secret: reading.project?.settings.secrets.current.reveal() ?? null };
  try {
    const { project, warnings } = loadConfig(env);
    return { secret: project?.secrets.current.reveal() ?? null, faults: [], warnings };
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    return { secret: null, faults: error.problem.detail.split("\n"), warnings: [] };
  }
}

function once<Value>(probe: () => Promise<Value>): () => Promise<Value> {
  let answer: Promise<Value> | null = null;
  return () => {
    answer ??= probe();
    return answer;
  };
}

/** Why the remote did not answer. `lines`: the last ones of git and ssh. */
export type RemoteFailure = Extract<Awaited<ReturnType<typeof probeRemote>>, { readonly kind: "failed" }>;

/** Asks the remote for its branches as the service asks: nobody can answer a prompt. Takes 30 s at most. */
export async function probeRemote(repoPath: string, reader: GitReader) {
  const options = { ...reader, timeoutMs: 10_000 };
  const remotes = await gitOutput(repoPath, ["remote"], options);
  if (remotes === null) return { kind: "unasked" } as const;
  const remote = remoteOf(reader.env);
  if (isRemoteName(remote) && !remotes.split("\n").includes(remote)) return { kind: "none", remote } as const;
  const url = parseGitRemoteUrl(
    (await gitOutput(repoPath, ["ls-remote", "--get-url", "--", remote], options)) ?? "",
  );
  const ending = await runGit(repoPath, ["ls-remote", "--", remote, "HEAD", "refs/heads/*"], options);
  const failed = (lines: string) => ({ kind: "failed", remote, url, lines }) as const;
  if (ending.kind !== "exited") return failed("it timed out after 10 s");
  if (ending.code !== 0) return failed(withoutCredentials(ending.lastLines.join("\n")));
  const rows = ending.output.split("\n").filter(Boolean);
  const refs = rows.map((row) => row.split("\t").reverse() as [string, string]);
  return { kind: "refs", remote, url, refs: new Map(refs) } as const;
}

/** Whether the repository is deployed with compose or as a stack, by the rule of examples/deploy.sh. */
export function hasComposeFile(repoPath: string, env: Environment): boolean {
  // Compose reads `.env` beside its file.
  return stackFiles({ projectDirectory: repoPath, files: [] }, withDotenv(env, repoPath)).length > 0;
}

/**
 * Asks compose for its version and for the project in `repoPath`, as the user of its scripts: compose may be a plugin in the
 * home of that user. It takes 20 s at most: compose has 10 s, and so has the look at the sources.
 */
export async function probeCompose(repoPath: string, script: Pick<ComposeOptions, "env" | "user">) {
  if (!hasComposeFile(repoPath, script.env)) return { kind: "no-file" } as const;
  const timeoutMs = 10_000;
  const target = { projectDirectory: repoPath, files: [] };
  const signal = AbortSignal.timeout(timeoutMs);
  const options = { ...script, target, signal };
  const version = await composeVersion(options, timeoutMs);
  if (version === null) return { kind: "no-compose", version } as const;
  try {
    if ((await chooseEngine(options)) === "swarm") return { kind: "swarm", version } as const;
    const unset: string[] = [];
    const loaded = await loadModel(options, (name) => {
      unset.push(name);
    });
    const model = await withSourcesReadOnly(loaded, repoPath, script.env);
    return { kind: "model", version, model, unset: unset as readonly string[] } as const;
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    const { evidence = [] } = error.problem;
    return { kind: "invalid", version, lines: evidence.length > 0 ? evidence : [error.message] } as const;
  }
}

/**
 * Asks the engine at DOCKER_HOST, or at its usual socket, for its versions. Takes 4 s at most.
 *
 * @returns with `imagePaths`, the directories that have the images; or the system's `code` (null for an address that is
 * no socket), `socketPath` (null likewise) and a sentence
 */
export async function probeEngine(env: Environment) {
  const dockerHost = env.DOCKER_HOST || undefined;
  try {
    const engine = connectEngine(dockerHost, 4_000);
    const [{ Version: version, ApiVersion: apiVersion }, imagePaths] = await Promise.all([
      getJson<{ readonly Version: string; readonly ApiVersion: string }>(engine, "/version"),
      imageDirectories(engine),
    ]);
    return { kind: "answers", engine, version, apiVersion, imagePaths } as const;
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    const { code = null } = (error.cause ?? {}) as { readonly code?: string };
    const socketPath = dockerSocketPath(dockerHost);
    return { kind: "failed", code, text: error.message, socketPath } as const;
  }
}

/** Sends a ping to the service's port, on a server to Caddy's, signed with the secret if there is one. */
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
  return { url, outcome, isHotpush: !["unreachable", "not-hotpush", "redirected"].includes(outcome) };
}
