import { type Branch, branches } from "../../config.ts";
import { type Check, judge, ok, problem, type Result, skipped, warning } from "../check.ts";
import { quote } from "../quote.ts";
import { outputOf } from "../run-program.ts";
import type { Scene } from "../scene.ts";

/** A push of any other branch is ignored. */
export const branchCheck: Check = {
  id: "branch",
  group: "Git",
  subject: "the remote has the branch that BRANCH names",
  async look(scene) {
    const { remote, repoPath, scriptEnv } = scene;
    const answer = await remote();
    if (answer.kind !== "refs") return skipped("the remote does not answer");
    const found = branches.filter((name) => answer.refs.has(`refs/heads/${name}`));
    if (found.length > 0) return judgeSetting(scene, found, answer.refs);
    const git = `git -C ${quote(repoPath)}`;
    const local = await outputOf(["git", "-C", repoPath, "rev-parse", "--verify", "HEAD"], {
      env: scriptEnv,
    });
    const text = "The remote has neither main nor master, and a push of any other branch is ignored.";
    if (local !== null)
      return judge([problem(text, { command: `${git} push origin HEAD:refs/heads/main` })], "");
    return judge([problem(text, { command: firstCommit(git) })], "");
  },
};

function judgeSetting(
  { branch, settings }: Scene,
  found: readonly Branch[],
  refs: ReadonlyMap<string, string>,
): Result {
  const commitOf = (name: Branch) => refs.get(`refs/heads/${name}`);
  if (branch !== null && found.includes(branch)) {
    return ok(`${branch} is at ${commitOf(branch)?.slice(0, 7)}`);
  }
  const head = found.find((name) => commitOf(name) === refs.get("HEAD")) ?? found[0] ?? "main";
  const cure = settings.set("BRANCH", head);
  if (branch === null) {
    const text = `BRANCH is not set, so main and master are both deployed: anyone who can create the other one of them at the git host controls what runs, whatever protects ${head}.`;
    return judge([warning(text, cure)], "");
  }
  const text = `BRANCH is ${branch}, but the remote has only ${head}: its pushes are ignored.`;
  return judge([problem(text, cure)], "");
}

function firstCommit(git: string): string {
  return `${git} commit --quiet --allow-empty --message "First commit" && ${git} push origin HEAD:refs/heads/main`;
}
