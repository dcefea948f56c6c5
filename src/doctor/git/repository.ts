import { ownUid } from "../../platform/files.ts";
import { checkOwnership, checkRepository } from "../../runner/repository.ts";
import { type Check, type Cure, judge, ok, problem, skipped } from "../check.ts";
import { quote } from "../quote.ts";
import { outputOf, runProgram } from "../run-program.ts";
import type { Scene } from "../scene.ts";

/** Whether REPO_PATH is the root of a checkout. */
export const repositoryCheck: Check = {
  id: "repository",
  group: "Git",
  subject: "REPO_PATH is the root of a git checkout",
  async look(scene) {
    const { repoPath, scriptEnv } = scene;
    const fault = checkRepository(repoPath);
    if (fault?.code === "repository_not_accessible") {
      const command = `chown -R ${ownUid()} ${quote(repoPath)}`;
      return judge(
        [problem(`${repoPath} may not be entered by this user (uid ${ownUid()}). As root:`, { command })],
        "",
      );
    }
    if (fault) return judge([problem(fault.detail, await otherPlace(scene))], "");
    const ran = await runProgram(["git", "-C", repoPath, "rev-parse", "--show-toplevel"], { env: scriptEnv });
    if (ran.kind === "missing") return skipped("git is not installed");
    if (ran.lines.includes("dubious ownership")) return ok(repoPath);
    if (ran.code !== 0) {
      const text = `${repoPath} is not a git repository, so there is nothing to pull.`;
      return judge([problem(text, await otherPlace(scene))], "");
    }
    const root = await outputOf(["readlink", "-f", repoPath], { env: scriptEnv });
    if (root === null || ran.output === root) return ok(repoPath);
    const text = `${repoPath} is inside the repository ${ran.output}; REPO_PATH must be its root.`;
    return judge([problem(text, scene.settings.set("REPO_PATH", quote(ran.output)))], "");
  },
};

/** Git does nothing in the repository of another user. */
export const ownershipCheck: Check = {
  id: "ownership",
  group: "Git",
  subject: "git trusts the owner of the repository",
  async look({ repoPath, scriptEnv }) {
    if (checkRepository(repoPath) !== null) return skipped("there is no repository yet");
    const fault = await checkOwnership(repoPath, scriptEnv);
    if (fault === null) return ok("git works in it");
    const [text = ""] = fault.detail.split(" Run:");
    const cure = { command: `git config --global --add safe.directory ${quote(repoPath)}` };
    const also = `If that user is the wrong one, as root instead: chown -R ${ownUid()} ${quote(repoPath)}`;
    return judge([problem(`${text} ${also}. If it is trusted:`, cure)], "");
  },
};

/** Where this is run in a checkout, that one is meant. */
async function otherPlace({ settings, repoPath, scriptEnv }: Scene): Promise<Cure> {
  const here = await outputOf(["git", "rev-parse", "--show-toplevel"], { env: scriptEnv });
  if (here !== null && here !== repoPath) return settings.set("REPO_PATH", quote(here));
  return { change: `git clone <address of your repository> ${quote(repoPath)}` };
}
