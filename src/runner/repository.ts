import { constants, lstatSync } from "node:fs";
import { join } from "node:path";
import { isAllowed, kindOf, ownUid } from "../platform/files.ts";
import { refusesOwner, runGit } from "../platform/git.ts";
import type { Problem } from "../problems.ts";
import type { CheckedScript } from "./known-secrets.ts";

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
