import { setTimeout as pause } from "node:timers/promises";
import type { Deployment } from "../../deployments/deployment.ts";
import { isAncestor, runGit, withoutReplacements } from "../../platform/git.ts";
import type { ProjectScript } from "../known-secrets.ts";
import { readRemoteHead, remoteOf } from "../repository.ts";

/** The newest commit of a branch, or a sentence on why there is none. */
export type FetchedTip = { readonly commit: string } | { readonly failure: string };

/**
 * Fetches the tip of the branch of a deployment and its history into the repository, without moving any ref there. The
 * tip must contain the commit of the deployment: a push that names another commit is not of this branch, or arrived before
 * the host's servers agreed. So, and because networks fail, a failed fetch is retried.
 *
 * @throws if `stopping` is aborted
 */
export async function fetchTip(
  script: ProjectScript,
  deployment: Deployment,
  stopping: AbortSignal,
): Promise<FetchedTip> {
  let found = await tryFetch(script, deployment, stopping);
  // The variable of examples/deploy.sh, if DEPLOY_ENV passes it.
  const pausesS = (script.environment.DEPLOY_RETRY_PAUSES || "1 2 3 3").split(/\s+/).map(Number);
  for (const pauseS of pausesS.filter(Number.isFinite)) {
    if (!("failure" in found) || stopping.aborted) break;
    await pause(pauseS * 1_000, undefined, { signal: stopping });
    found = await tryFetch(script, deployment, stopping);
  }
  stopping.throwIfAborted();
  return found;
}

const fetchTimeoutMs = 10 * 60_000;
/** Housekeeping would go on in the background. */
const noHousekeeping = ["-c", "gc.auto=0", "-c", "maintenance.auto=false"];
const quietly = ["--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--refmap="];

async function tryFetch(
  script: ProjectScript,
  { ref, commit }: Deployment,
  signal: AbortSignal,
): Promise<FetchedTip> {
  const { repoPath, environment: env, user, redactor } = script;
  // If the remote has no such branch, `git fetch` takes a tag or another branch whose name ends alike.
  const head = await readRemoteHead(script, ref, { signal });
  if (head.kind === "unknown") return { failure: `Nothing was run: ${head.detail}` };
  const args = [...noHousekeeping, "fetch", ...quietly, "--", remoteOf(env), ref];
  const ending = await runGit(repoPath, args, { env, user, timeoutMs: fetchTimeoutMs, signal });
  if (ending.kind !== "exited" || ending.code !== 0) {
    const reason =
      ending.kind === "not_found" ? "git is not installed" : (ending.lastLines.at(-1) ?? ending.kind);
    return {
      failure: `git could not fetch ${ref}: ${redactor().text(reason)} Nothing was run. Check address, credentials and network.`,
    };
  }
  if (await isAncestor(repoPath, commit, head.commit, { env: withoutReplacements(env), user })) {
    return { commit: head.commit };
  }
  return {
    failure: `Commit ${commit.slice(0, 7)} is not in ${ref}, which is at ${head.commit.slice(0, 7)}: a force push has replaced it, or it is gone. Nothing was run. To deploy the current branch: hotpush deploy`,
  };
}
