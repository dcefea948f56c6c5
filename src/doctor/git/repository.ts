import { ownUid } from "../../platform/files.ts";
import { gitOutput, refusesOwner } from "../../platform/git.ts";
import { outputOf } from "../../platform/run-command.ts";
import { checkOwnership, checkRepository } from "../../runner/repository.ts";
import { type CheckFinding, type Fix, ok, problem, quote, skip } from "../check.ts";
import type { DoctorContext } from "../context.ts";

/** Whether REPO_PATH is the root of a checkout. */
export async function checkRepositoryRoot(context: DoctorContext): Promise<CheckFinding> {
  const { repoPath, scriptEnv: env, settings } = context;
  const fault = checkRepository(repoPath);
  if (fault?.code === "repository_not_accessible") {
    const command = `chown -R ${ownUid()} ${quote(repoPath)}`;
    return problem(`This user (uid ${ownUid()}) may not enter ${repoPath}. As root:`, command);
  }
  if (fault) return problem(fault.detail, await otherPlace(context));
  const ending = await context.git("rev-parse", "--show-toplevel");
  if (ending.kind === "not_found") return skip("git is not installed");
  if (refusesOwner(ending)) return ok(repoPath);
  if (ending.kind !== "exited" || ending.code !== 0) {
    const text = `${repoPath} is not a git repository, so there is nothing to pull.`;
    return problem(text, await otherPlace(context));
  }
  const root = await outputOf(["readlink", "-f", repoPath], { env });
  if (root === null || ending.output === root) return ok(repoPath);
  const text = `${repoPath} is inside the repository ${ending.output}; REPO_PATH must be its root.`;
  return problem(text, settings.set("REPO_PATH", quote(ending.output)));
}

/** Git refuses to work in another user's repository. */
export async function checkRepositoryOwner(context: DoctorContext): Promise<CheckFinding> {
  const { repoPath, scriptEnv: environment, scriptUser: user } = context;
  if (checkRepository(repoPath) !== null) return skip("there is no repository yet");
  const fault = await checkOwnership({ repoPath, environment, user });
  if (fault === null) return ok("git works in it");
  const [text = ""] = fault.detail.split(" Run:");
  const command = `git config --global --add safe.directory ${quote(repoPath)}`;
  const takeIt = `If that is the wrong user, run as root instead: chown -R ${user?.uid ?? ownUid()} ${quote(repoPath)}`;
  return problem(`${text} ${takeIt}. To trust that user:`, command);
}

/** If the working directory is in a checkout, that one is meant. */
async function otherPlace({
  settings,
  repoPath,
  scriptEnv: env,
  scriptUser: user,
}: DoctorContext): Promise<Fix> {
  const here = await gitOutput(".", ["rev-parse", "--show-toplevel"], { env, user });
  if (here !== null && here !== repoPath) return settings.set("REPO_PATH", quote(here));
  return { change: `git clone <address of your repository> ${quote(repoPath)}` };
}
