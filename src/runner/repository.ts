import { constants, lstatSync } from "node:fs";
import { join } from "node:path";
import { findProgram, isAllowed, kindOf, ownUid } from "#platform/files";
import { refusesOwner, runGit } from "#platform/git";
import { hasSucceeded, runCommand } from "#platform/run-command";
import type { SystemUser } from "#platform/users";
import type { Problem } from "#problems";
import type { CheckedScript } from "./script.ts";

/** What prevents a program from running in the repository directory, or null. */
export function checkRepository(repoPath: string): Problem | null {
  const entry = kindOf(repoPath);
  if (entry === "missing") {
    return {
      code: "repository_missing",
      detail: `REPO_PATH is ${repoPath}, which does not exist. Clone the repository there, mount it, or set REPO_PATH.`,
    };
  }
  if (entry === "inaccessible") return repositoryNotAccessible(repoPath);
  if (entry !== "directory") {
    return {
      code: "repository_not_a_directory",
      detail: `REPO_PATH is ${repoPath}, which is not a directory. Set it to the root of the repository.`,
    };
  }
  return isAllowed(repoPath, constants.R_OK | constants.X_OK) ? null : repositoryNotAccessible(repoPath);
}

function repositoryNotAccessible(repoPath: string): Problem {
  return {
    code: "repository_not_accessible",
    detail: `This user (uid ${ownUid()}) may not enter ${repoPath}. Run: chown -R ${ownUid()} ${repoPath}`,
  };
}

/**
 * Git does nothing in a repository of another user, unless its settings trust that repository. It is asked only if the
 * owner is another user.
 */
export async function checkOwnership({
  repoPath,
  environment: env,
  user,
}: CheckedScript): Promise<Problem | null> {
  const uid = user?.uid ?? ownUid();
  const owner = lstatSync(join(repoPath, ".git"), { throwIfNoEntry: false })?.uid;
  if (owner === undefined || (owner === uid && lstatSync(repoPath).uid === uid)) return null;
  // A machine that cannot start git now says nothing about the owner: starting the script fails by itself then.
  const ending = await runGit(repoPath, ["rev-parse", "--git-dir"], { env, user }).catch(() => null);
  const isRefused = ending?.kind === "exited" && refusesOwner(ending);
  if (!isRefused) return null;
  const detail = `${repoPath} belongs to the user with uid ${owner}, so git refuses to use it as this user (uid ${uid}). Run: chown -R ${uid} ${repoPath}; or, if you trust that user, run: git config --global --add safe.directory ${repoPath}`;
  return { code: "repository_dubious_ownership", detail };
}

/** What keeps a script from running as the owner of its repository, or null. */
export async function checkOwner({ user, repoPath, environment }: CheckedScript): Promise<Problem | null> {
  if (user === null) return null;
  const fault = findUserFault(user, repoPath, environment.PATH ?? "");
  if (fault !== null) return { code: "owner_unusable", detail: fault };
  const script = join(repoPath, "deploy.sh");
  const canUser = (access: string, path: string) =>
    // Root may do everything, so only a process of the user shows what the user may do.
    runCommand({ argv: ["test", access, path], user, env: environment, timeoutMs: testTimeoutMs });
  const tests = [canUser("-x", repoPath), canUser("-r", script), canUser("-x", script)] as const;
  const [entering, ...using] = await Promise.all(tests);
  const refusal = entering.lastLines.at(-1);
  if (refusal !== undefined) return cannotBecome(user, repoPath, refusal);
  if (!hasSucceeded(entering)) return cannotEnter(user, repoPath);
  const [canRead, canExecute] = using.map(hasSucceeded);
  return canRead && canExecute ? null : cannotUse(user, script, canRead === true);
}

const testTimeoutMs = 10_000;

function findUserFault({ uid, name }: SystemUser, repoPath: string, searchPath: string): string | null {
  if (name === null)
    return `${repoPath} belongs to uid ${uid}, and /etc/passwd has no such user. deploy.sh runs as the owner of the checkout, and ssh refuses a user without a name. A container keeps the /etc/passwd that it started with. If the user is new, run hotpush init in the checkout again, or in the directory of the server, /etc/hotpush: docker compose up -d --force-recreate run. If not, give the checkout to a user of this machine with chown -R.`;
  if (findProgram("setpriv", searchPath) === null)
    return "deploy.sh runs as the owner of the checkout by means of setpriv, which is not installed. Install the package util-linux.";
  return null;
}

function cannotBecome(user: SystemUser, repoPath: string, refusal: string): Problem {
  const detail = `No program can be started as ${nameOf(user)}, who owns ${repoPath}: ${refusal}. Give Hotpush the capabilities SETUID and SETGID, or run it as that user.`;
  return { code: "owner_unusable", detail };
}

function cannotEnter(user: SystemUser, repoPath: string): Problem {
  const detail = `deploy.sh runs as ${nameOf(user)}, who owns ${repoPath} but may not enter it. To find the directory that keeps that user out: namei -l ${repoPath}`;
  return { code: "repository_not_accessible", detail };
}

function cannotUse(user: SystemUser, script: string, canRead: boolean): Problem {
  const detail = `deploy.sh runs as ${nameOf(user)}, who owns the checkout but may not ${canRead ? "execute" : "read"} ${script}. Run: chown ${user.uid} ${script} && chmod u+rx ${script}`;
  return { code: canRead ? "script_not_executable" : "script_not_readable", detail };
}

function nameOf({ name, uid }: SystemUser): string {
  return `${name} (uid ${uid})`;
}
