import { lchownSync, lstatSync, mkdirSync, type Stats } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Deployment } from "#deployments/deployment";
import { ownUid } from "#platform/files";
import { neverAsk, withoutReplacements } from "#platform/git";
import type { SystemUser } from "#platform/users";
import type { Problem } from "#problems";

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

/** Nobody can answer a prompt: a tool that would ask must fail at once instead of hanging. */
const unattended = { ...neverAsk, DEBIAN_FRONTEND: "noninteractive" } as const;

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
    ...{ HOME: user.home, USER: name, LOGNAME: name, XDG_STATE_HOME: join(user.home, ".local/state") },
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
    DEPLOY_BRANCH: ref.replace(/^refs\/heads\//, ""),
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
  const [directory, uid] = [deployLogDirectory(user), user?.uid ?? ownUid()];
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
