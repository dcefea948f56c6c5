import { type Check, judge, ok, problem, skipped } from "../check.ts";
import { quote } from "../quote.ts";
import { outputOf } from "../run-program.ts";

/** A push of any other branch is ignored. */
export const branchCheck: Check = {
  id: "branch",
  group: "Git",
  subject: "the remote has a branch main or master",
  async look({ remote, repoPath, scriptEnv }) {
    const answer = await remote();
    if (answer.kind !== "refs") return skipped("the remote does not answer");
    const found = ["main", "master"].filter((name) => answer.refs.has(`refs/heads/${name}`));
    if (found.length > 0) {
      return ok(
        found.map((name) => `${name} is at ${answer.refs.get(`refs/heads/${name}`)?.slice(0, 7)}`).join(", "),
      );
    }
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

function firstCommit(git: string): string {
  return `${git} commit --quiet --allow-empty --message "First commit" && ${git} push origin HEAD:refs/heads/main`;
}
