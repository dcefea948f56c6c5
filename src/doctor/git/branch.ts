import { type Branch, branches } from "../../config.ts";
import { type Check, type Fault, ok, type ProbeResult, problem, skip, warning } from "../check.ts";
import type { DoctorContext } from "../context.ts";
import { gitIn } from "../fix.ts";

/** A push of any other branch is ignored. */
export const branchCheck: Check = {
  id: "branch",
  group: "Git",
  subject: "the remote has the branch that BRANCH names",
  async probe(context) {
    const answer = await context.remote();
    if (answer.kind !== "refs") return skip("the remote does not answer");
    const found = branches.filter((name) => answer.refs.has(`refs/heads/${name}`));
    if (found.length > 0) return judgeSetting(context, found, answer.refs);
    const git = gitIn(context.repoPath);
    const hasCommit = (await context.readGit("rev-parse", "--verify", "HEAD")) !== null;
    const commit = `${git} commit --quiet --allow-empty --message "First commit" && `;
    const command = `${hasCommit ? "" : commit}${git} push origin HEAD:refs/heads/main`;
    const text = "The remote has neither main nor master, and a push of any other branch is ignored.";
    return problem(text, { command });
  },
};

function judgeSetting(
  { branch, settings }: DoctorContext,
  found: readonly Branch[],
  refs: ReadonlyMap<string, string>,
): ProbeResult | Fault {
  const commitOf = (name: Branch) => refs.get(`refs/heads/${name}`);
  if (branch !== null && found.includes(branch)) {
    return ok(`${branch} is at ${commitOf(branch)?.slice(0, 7)}`);
  }
  const head = found.find((name) => commitOf(name) === refs.get("HEAD")) ?? found[0] ?? "main";
  const fix = settings.set("BRANCH", head);
  if (branch === null) {
    const text = `BRANCH is not set, so main and master are both deployed: anyone who can create the other one at the git host controls what runs, however ${head} is protected.`;
    return warning(text, fix);
  }
  return problem(`BRANCH is ${branch}, but the remote has only ${head}: its pushes are ignored.`, fix);
}
