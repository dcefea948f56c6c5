import { execFile } from "node:child_process";
import { constants, lstatSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { isAllowed, kindOf, ownUid } from "../platform/files.ts";
import type { Problem } from "../problems.ts";

/** What would keep anything from running in the repository directory, or null. */
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
    detail: `${repoPath} may not be entered by this user (uid ${ownUid()}). Run: chown -R ${ownUid()} ${repoPath}`,
  };
}

/**
 * Git does nothing in a repository of another user, unless it was told to trust it. Asked only where the owner is
 * another one.
 *
 * @param env the environment that the script will get, whose settings of git count
 */
export async function checkOwnership(repoPath: string, env: Record<string, string>): Promise<Problem | null> {
  const owner = lstatSync(join(repoPath, ".git"), { throwIfNoEntry: false })?.uid;
  if (owner === undefined || (owner === ownUid() && lstatSync(repoPath).uid === ownUid())) return null;
  try {
    await promisify(execFile)("git", ["-C", repoPath, "rev-parse", "--git-dir"], { env, timeout: 10_000 });
    return null;
  } catch (error) {
    if (!String((error as { stderr?: string }).stderr).includes("dubious ownership")) return null;
    const detail = `${repoPath} belongs to the user with uid ${owner}, so git refuses it to this one (uid ${ownUid()}). Run: chown -R ${ownUid()} ${repoPath}; or, if you trust that user, run: git config --global --add safe.directory ${repoPath}`;
    return { code: "repository_dubious_ownership", detail };
  }
}
