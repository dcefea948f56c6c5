import { constants } from "node:fs";
import { join } from "node:path";
import { isAllowed, kindOf, ownUid } from "../platform/files.ts";
import type { Problem } from "../problems.ts";
import { checkInterpreterLine } from "./check-interpreter.ts";
import { checkOwnership, checkRepository } from "./check-repository.ts";
import { checkDeployLogDirectory } from "./log-paths.ts";

/**
 * Looks for what would keep `REPO_PATH/deploy.sh` from starting. The system's own errors mislead: a missing directory,
 * a missing interpreter and Windows line endings are all "no such file or directory" to it.
 *
 * @param env the environment that the script will get
 * @returns what is wrong and how to mend it, or null
 */
export async function checkScript(repoPath: string, env: Record<string, string>): Promise<Problem | null> {
  const script = join(repoPath, "deploy.sh");
  return (
    checkRepository(repoPath) ??
    checkFile(script) ??
    checkInterpreterLine(script, env.PATH ?? "") ??
    (await checkOwnership(repoPath, env)) ??
    checkDeployLogDirectory()
  );
}

function checkFile(script: string): Problem | null {
  switch (kindOf(script)) {
    case "missing":
      return {
        code: "script_missing",
        detail: `${script} does not exist. Copy examples/deploy.sh there, run: chmod +x deploy.sh, and commit it.`,
      };
    case "broken-link":
      return {
        code: "script_link_broken",
        detail: `${script} is a link to a file that does not exist. Mend the link, or put the script itself there.`,
      };
    case "inaccessible":
      return {
        code: "script_not_readable",
        detail: `${script} may not be looked at by this user (uid ${ownUid()}). Run: chmod a+rx ${script}`,
      };
    case "directory":
    case "other":
      return {
        code: "script_not_a_file",
        detail: `${script} is not a plain file. Move it away and put the script there.`,
      };
    case "file":
      return checkModes(script);
  }
}

function checkModes(script: string): Problem | null {
  if (!isAllowed(script, constants.X_OK)) {
    return {
      code: "script_not_executable",
      detail: `${script} is not executable, or its file system is mounted noexec. Run: git update-index --chmod=+x deploy.sh, commit and push; here: chmod +x ${script}`,
    };
  }
  if (!isAllowed(script, constants.R_OK)) {
    return {
      code: "script_not_readable",
      detail: `${script} may not be read by this user (uid ${ownUid()}). Run: chmod a+rx ${script}`,
    };
  }
  return null;
}
