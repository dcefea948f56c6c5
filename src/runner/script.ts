import { chmodSync, lchownSync, mkdirSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { CommitStatus } from "#config/commit-status";
import type { Notify, Secrets } from "#config/project";
import { credentialsPath, stateDirectoryOf } from "#config/state-path";
import { defaultDockerHost, dockerSocketPath } from "#platform/docker/mounts";
import { ownUid, statOf } from "#platform/files";
import { controllerOf } from "#platform/foreign-files";
import { readUser, type SystemUser, withGroup } from "#platform/users";
import {
  createRedactor,
  looksLikeSecretFile,
  type Redactor,
  readEnvFiles,
  readSecretFile,
  secretsInText,
  secretsInVariable,
} from "#redaction";
import { childEnvironment, type EnvironmentOptions } from "./environment.ts";

/** What a project's deploy script, and git in its repository, run with. */
export interface ProjectScript {
  readonly repoPath: string;
  /** The user that they run as; null: the user of this process. */
  readonly user: SystemUser | null;
  /** The environment of every child of the service. */
  readonly environment: Readonly<Record<string, string>>;
  /** A directory to make for their state; null: they use the one of the service. */
  readonly statePath: string | null;
  /** Creates the redactor of their output, with the secrets that are known now. */
  readonly redactor: () => Redactor;
}

/** What the checks of a script need. */
export type CheckedScript = Pick<ProjectScript, "repoPath" | "user" | "environment">;

export interface ScriptSources extends Omit<EnvironmentOptions, "user"> {
  readonly secrets: Secrets;
  readonly notify?: Notify;
  readonly commitStatus?: CommitStatus | null;
  /** Whether scripts run as the owner of the repository, if this process may become that user. Default: no. */
  readonly runsAsOwner?: boolean;
}

/** Creates a function that returns what they run with now: the repository can get another owner, and its files change. */
export function createProjectScript(sources: ScriptSources): () => ProjectScript {
  const { env, scriptSecrets, repoPath, runsAsOwner = false, scriptStatePath: statePath = null } = sources;
  return () => {
    const user = runsAsOwner ? ownerOf(repoPath, env.DOCKER_HOST || scriptSecrets?.DOCKER_HOST) : null;
    const environment = childEnvironment({ ...sources, user });
    const redactor = () => createRedactor(findSecrets(sources, environment, user?.uid));
    return { repoPath, statePath, user, environment, redactor };
  };
}

/**
 * The user that the scripts of a checkout run as: its owner, also as a member of the group of the Docker socket. A checkout of
 * root in a directory of another user is that user's, who could exchange it. It is looked up each time, because a checkout can
 * change hands.
 *
 * @param dockerHost the DOCKER_HOST of the scripts
 * @returns null if it is the user of this process, or if this process may not become another one
 */
export function ownerOf(repoPath: string, dockerHost = defaultDockerHost): SystemUser | null {
  const owner = ownUid() === 0 ? controllerOf(repoPath) : null;
  if (owner === null) return null;
  const user = readUser(owner.uid, owner.gid);
  const socketPath = dockerSocketPath(dockerHost);
  const socket = socketPath === null ? null : statOf(socketPath);
  return socket === null ? user : withGroup(user, socket.gid);
}

/**
 * The secrets that a deploy script may print: those of the settings, of its environment, of the repository's environment
 * files, of Docker and of git.
 *
 * @param namedBy the user who wrote the files of the repository, if that is not the one of this process
 */
function findSecrets(
  { secrets, notify, commitStatus, repoPath, scriptSecrets = {} }: ScriptSources,
  environment: Readonly<Record<string, string>>,
  namedBy: number | undefined,
): readonly string[] {
  const home = environment.HOME ?? "/";
  const inVariable = (name: string, value: string, by?: number) => [
    ...secretsInVariable(name, value),
    ...(looksLikeSecretFile(name) ? [readSecretFile(resolve(repoPath, value), by)] : []),
  ];
  const targets = notify?.targets ?? [];
  const settings = [
    ...[secrets.current, secrets.previous, commitStatus?.token],
    ...targets.flatMap(({ url, key }) => [url, key]),
  ];
  const gitFiles = [
    ...[join(repoPath, ".git/config"), environment.GIT_CONFIG_GLOBAL ?? join(home, ".gitconfig")],
    ...[join(home, ".git-credentials"), credentialsPath(stateDirectoryOf(environment))],
  ];
  return [
    ...settings.flatMap((secret) => (secret ? [secret.reveal()] : [])),
    ...Object.values(scriptSecrets),
    ...Object.entries(environment).flatMap(([name, value]) => inVariable(name, value)),
    ...readEnvFiles(repoPath).flatMap(({ name, value }) => inVariable(name, value, namedBy)),
    ...gitFiles.flatMap((path) => secretsInText(readSecretFile(path))),
    // Passwords that `docker login` stored.
    ...inVariable(
      "",
      readSecretFile(join(environment.DOCKER_CONFIG ?? join(home, ".docker"), "config.json")),
    ),
  ];
}

/**
 * Makes the directory in which the scripts of a project keep their state, if they have one, for their user alone: for the
 * lock and the good versions of its roll-outs.
 *
 * @throws Error with a `code` if the system refuses, or the directory belongs to another user
 */
export function makeScriptState({ statePath, user }: Pick<ProjectScript, "statePath" | "user">): void {
  if (statePath === null) return;
  const { uid, gid } = user ?? { uid: ownUid(), gid: process.getgid?.() ?? 0 };
  const parent = dirname(statePath);
  mkdirSync(parent, { recursive: true, mode: 0o711 });
  // The users of other projects pass through it, each to a directory of their own.
  const mode = statOf(parent)?.mode ?? 0;
  if ((mode & 0o001) === 0) chmodSync(parent, mode | 0o011);
  const isNew = mkdirSync(statePath, { recursive: true, mode: 0o700 }) !== undefined;
  if (isNew) lchownSync(statePath, uid, gid);
  const owner = statSync(statePath).uid;
  if (owner === uid) return;
  const reason = `${statePath} belongs to uid ${owner} and not to the owner of the checkout. Run: chown -R ${uid}:${gid} ${statePath}`;
  throw Object.assign(new Error(reason), { code: "other_owner" });
}
