import { type Deployment, liveCommit, type Skip, type SkipRules } from "../../deployments/deployment.ts";
import {
  countNewCommits,
  type GitReader,
  readCommit,
  runGit,
  withoutReplacements,
} from "../../platform/git.ts";
import type { ProjectScript } from "../known-secrets.ts";
import { sourceOf } from "../repository.ts";

export interface FindSkipOptions {
  readonly script: ProjectScript;
  /** DEPLOY_PATHS; none: every push is deployed. */
  readonly paths: readonly string[];
  readonly rules: SkipRules;
}

/** Why a deployment whose commit was fetched can be skipped, or null. If git cannot tell, it is deployed. */
export async function findSkip(
  { script, paths, rules }: FindSkipOptions,
  deployment: Deployment,
): Promise<Skip | null> {
  const { commit } = deployment;
  const { repoPath, environment, user } = script;
  const reader = { env: withoutReplacements(environment), user };
  const found = await readCommit(repoPath, commit, reader);
  if (found === null) return null;
  const source = sourceOf(found, null);
  const isMarked = rules.byMarker && /\[skip deploy\]/i.test(found.subject);
  if (isMarked && (await speaksForAll(repoPath, deployment, rules.known, reader))) {
    return { rule: "byMarker", reason: `The subject of ${commit.slice(0, 7)} has [skip deploy].`, source };
  }
  const live = liveCommit(rules.live);
  if (paths.length === 0 || !rules.byPaths || !(await isSame(repoPath, [live, commit], paths, reader)))
    return null;
  const reason = `No file that DEPLOY_PATHS names differs between ${live.slice(0, 7)}, which is live, and ${commit.slice(0, 7)}.`;
  return { rule: "byPaths", reason, source };
}

/**
 * Whether all commits that no deployment was about belong to the push whose newest is marked. If the deliveries of others
 * were lost, the mark says nothing about them. Without a commit before, only the newest is known to belong to it.
 */
async function speaksForAll(
  repoPath: string,
  { before, commit }: Deployment,
  known: readonly string[],
  reader: GitReader,
): Promise<boolean> {
  if (before !== null && known.includes(before)) return true;
  const [tip, own] = before === null ? [commit, 1] : [before, 0];
  const count = await countNewCommits(repoPath, tip, { known, most: own + 1 }, reader);
  return count !== null && count <= own;
}

const diffTimeoutMs = 60_000;

/** Whether git sees no difference between two commits in what `paths` name. */
async function isSame(
  repoPath: string,
  commits: readonly string[],
  paths: readonly string[],
  { env, user }: GitReader,
): Promise<boolean> {
  // Plumbing, so no setting of the user has a part in it. A variable could make the patterns plain names.
  const args = ["diff-tree", "--quiet", "-r", "--no-renames", "--ignore-submodules=none", ...commits, "--"];
  const ending = await runGit(repoPath, [...args, ...pathspecs(paths)], {
    env: { ...env, GIT_LITERAL_PATHSPECS: "0" },
    user,
    timeoutMs: diffTimeoutMs,
  });
  return ending.kind === "exited" && ending.code === 0;
}

/** A pattern of a directory stands for all that is in it: git takes it so only if the pattern has no wildcard. */
function pathspecs(paths: readonly string[]): readonly string[] {
  const spec = (magic: string, path: string) => [`:(${magic},glob)${path}`, `:(${magic},glob)${path}/**`];
  const excluded = paths.filter((path) => path.startsWith("!"));
  const included = paths.filter((path) => !path.startsWith("!"));
  return [
    ...(included.length === 0 ? [":(top)"] : included.flatMap((path) => spec("top", path))),
    ...excluded.flatMap((path) => spec("top,exclude", path.slice(1))),
  ];
}
