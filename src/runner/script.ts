import { chmodSync, lchownSync, lstatSync, mkdirSync, type Stats, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { CommitStatus } from "#config/commit-status";
import type { Notify, Secrets } from "#config/project";
import { credentialsPath, stateDirectoryOf } from "#config/server";
import type { Deployment } from "#deployments/deployment";
import { branchOf } from "#deployments/push";
import { defaultDockerHost, dockerSocketPath } from "#platform/docker/engine";
import { ownUid, readUser, type SystemUser, statOf, withGroup } from "#platform/files";
import { controllerOf } from "#platform/foreign-files";
import { neverAsk, withoutReplacements } from "#platform/git";
import type { Argv } from "#platform/run-command";
import type { Problem } from "#problems";
import {
  createRedactor,
  looksLikeSecretFile,
  type Redactor,
  readEnvFiles,
  readSecretFile,
  secretsInText,
  secretsInVariable,
} from "#redaction";

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
  /** The commands that print more of its secrets, by their names. */
  readonly secretCommands: Readonly<Record<string, Argv>>;
  /** The same with these secrets, and without commands. */
  readonly withSecrets: (secrets: Environment) => ProjectScript;
}

/** What the checks of a script need. */
export type CheckedScript = Pick<ProjectScript, "repoPath" | "user" | "environment">;

export interface ScriptSources extends Omit<EnvironmentOptions, "user"> {
  readonly secrets: Secrets;
  readonly notify?: Notify;
  readonly commitStatus?: CommitStatus | null;
  readonly secretCommands?: Readonly<Record<string, Argv>>;
  /** Whether scripts run as the owner of the repository, if this process may become that user. Default: no. */
  readonly runsAsOwner?: boolean;
}

/** Creates a function that returns what they run with now: the repository can get another owner, and its files change. */
export function createProjectScript(sources: ScriptSources): () => ProjectScript {
  const { env, scriptSecrets, repoPath, runsAsOwner = false, scriptStatePath: statePath = null } = sources;
  const { secretCommands = {} } = sources;
  const withSecrets = (secrets: Environment) =>
    createProjectScript({
      ...sources,
      scriptSecrets: { ...scriptSecrets, ...secrets },
      secretCommands: {},
    })();
  return () => {
    const user = runsAsOwner ? ownerOf(repoPath, env.DOCKER_HOST || scriptSecrets?.DOCKER_HOST) : null;
    const environment = childEnvironment({ ...sources, user });
    const redactor = () => createRedactor(findSecrets(sources, environment, user?.uid));
    return { repoPath, statePath, user, environment, redactor, secretCommands, withSecrets };
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
    secrets.current,
    secrets.previous,
    commitStatus?.token,
    ...targets.flatMap(({ url, key }) => [url, key]),
  ];
  const gitFiles = [
    join(repoPath, ".git/config"),
    environment.GIT_CONFIG_GLOBAL ?? join(home, ".gitconfig"),
    join(home, ".git-credentials"),
    credentialsPath(stateDirectoryOf(environment)),
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

/** The variables of the service that a script may see; never a webhook secret. */
const passedNames = [
  "PATH HOME USER LOGNAME LANG TZ TMPDIR",
  "HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY http_proxy https_proxy no_proxy all_proxy",
  // So that `hotpush rollout` in the script uses the state directory of the service.
  "STATE_PATH XDG_STATE_HOME",
].flatMap((line) => line.split(" "));
const passedPrefixes = ["HOTPUSH_", "LC_", "DOCKER_", "COMPOSE_", "BUILDX_", "BUILDKIT_", "GIT_", "SSH_"];

/** Last in the script's PATH, so that it can say `hotpush rollout`. */
export const binDirectory = fileURLToPath(new URL("../../bin", import.meta.url));

export interface EnvironmentOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** More names that may pass, from DEPLOY_ENV. */
  readonly deployEnv: readonly string[];
  readonly repoPath: string;
  /** What only the scripts of a project need. */
  readonly scriptSecrets?: Readonly<Record<string, string>>;
  /** The user that the children run as; null: the user of this process. */
  readonly user?: SystemUser | null;
  /** The state directory of `hotpush rollout` in the script; null: the one of the service. */
  readonly scriptStatePath?: string | null;
  /** The directory of orders to roll-outs. */
  readonly ordersPath?: string | null;
}

type Environment = Readonly<Record<string, string>>;

/** The environment of every child of the service: the variables of an allow-list, and settings that prevent prompts. */
export function childEnvironment(options: EnvironmentOptions): Environment {
  const {
    env,
    deployEnv,
    repoPath,
    scriptSecrets = {},
    user = null,
    scriptStatePath = null,
    ordersPath = null,
  } = options;
  // Nobody can answer a prompt: a tool that would ask must fail at once instead of hanging.
  const unattended = { ...neverAsk(repoPath), DEBIAN_FRONTEND: "noninteractive" };
  const passed: Record<string, string> = { ...scriptSecrets, ...unattended };
  for (const name of Object.keys(passed)) if (name.startsWith("WEBHOOK_SECRET")) delete passed[name];
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && isPassed(name, deployEnv)) passed[name] = value;
  }
  const path = passed.PATH ?? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  if (user !== null) Object.assign(passed, ofUser(user, passed));
  if (scriptStatePath !== null) passed.STATE_PATH = scriptStatePath;
  if (ordersPath !== null) passed.HOTPUSH_ORDERS = ordersPath;
  return { ...passed, PATH: `${path}:${binDirectory}`, REPO_PATH: repoPath };
}

/** What differs for another user than that of this process: nothing is left that leads into this one's directories. */
function ofUser(user: SystemUser, passed: Environment): Environment {
  const name = user.name ?? String(user.uid);
  return {
    HOME: user.home,
    USER: name,
    LOGNAME: name,
    XDG_STATE_HOME: join(user.home, ".local/state"),
    STATE_PATH: join(user.home, ".local/state/hotpush"),
    ...(passed.BUILDX_CONFIG && { BUILDX_CONFIG: join(deployLogDirectory(user), "buildx") }),
  };
}

/** The environment of a deploy script: that of every child, and the deployment. */
export function scriptEnvironment(
  { environment, user }: { readonly environment: Environment; readonly user: SystemUser | null },
  { id, ref, commit, trigger }: Deployment,
): Environment {
  return {
    // The commit that was decided about is the one that git has under this id, and not a replacement for it.
    ...withoutReplacements(environment),
    DEPLOY_ID: String(id),
    DEPLOY_REF: ref,
    DEPLOY_BRANCH: branchOf(ref),
    DEPLOY_COMMIT: commit,
    DEPLOY_TRIGGER: trigger,
    DEPLOY_LOG: join(deployLogDirectory(user), `deploy-${id}.log`),
  };
}

function isPassed(name: string, deployEnv: readonly string[]): boolean {
  if (name.startsWith("WEBHOOK_SECRET")) return false;
  return (
    passedNames.includes(name) ||
    deployEnv.includes(name) ||
    passedPrefixes.some((prefix) => name.startsWith(prefix))
  );
}

/**
 * What is wrong with the directory for the scripts' own logs, or null. It has a guessable name in a directory where every
 * user may write: a user who made it earlier could read the logs, or redirect them by a link.
 */
export function checkDeployLogDirectory(user: SystemUser | null): Problem | null {
  const directory = deployLogDirectory(user);
  const uid = user?.uid ?? ownUid();
  const stats = makeAndStat(directory, user);
  if (!stats) {
    const detail = `The directory ${directory} for the log of deploy.sh cannot be created. Make ${tmpdir()} writable for this user (uid ${uid}), or set TMPDIR to a directory that is.`;
    return { code: "temporary_directory_unusable", detail };
  }
  if (stats.isDirectory() && stats.uid === uid && (stats.mode & 0o022) === 0) return null;
  const detail = `${directory}, for the log of deploy.sh, is not a directory to which only this user (uid ${uid}) may write. Run: rm -rf ${directory}; or set TMPDIR to a directory of your own.`;
  return { code: "temporary_directory_unusable", detail };
}

/** What is at `directory` after an attempt to create it; null if nothing is, and nothing can be. */
function makeAndStat(directory: string, user: SystemUser | null): Stats | null {
  try {
    const made = mkdirSync(directory, { recursive: true, mode: 0o700 });
    if (user !== null && made !== undefined) lchownSync(directory, user.uid, user.gid);
  } catch {
    // The existing file decides.
  }
  try {
    return lstatSync(directory);
  } catch {
    return null;
  }
}

/** The directory in which the scripts of a user write logs of their own; null: of the user of this process. */
export function deployLogDirectory(user: SystemUser | null): string {
  return join(tmpdir(), `hotpush-${user?.uid ?? ownUid()}`);
}
