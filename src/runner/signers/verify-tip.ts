import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { readSigners } from "../../config/signers-file.ts";
import type { Deployment } from "../../deployments/deployment.ts";
import { isAncestor, runGit } from "../../platform/git.ts";
import type { Problem } from "../../problems.ts";
import type { ProjectScript } from "../known-secrets.ts";
import { readRemoteHead, remoteOf } from "../repository.ts";
import { signatureProblem } from "./judge-signature.ts";
import { VerificationError, verifyCommit } from "./verify-commit.ts";

/** Which commits may be deployed. */
export interface Signing {
  readonly signersPath: string;
  /** The commit of the last successful deployment, or null if there was none. */
  readonly findLastDeployed: () => string | null;
  /** Aborted when the service stops. */
  readonly stopping: AbortSignal;
}

export interface TipOptions extends Signing {
  readonly script: ProjectScript;
  readonly statePath: string;
}

export type Tip =
  | { readonly kind: "verified"; readonly commit: string; readonly signer: string }
  | { readonly kind: "refused"; readonly problem: Problem }
  | { readonly kind: "try-again"; readonly detail: string };

/**
 * Fetches the branch of a deployment and checks whether its tip may be deployed: it must contain the commit asked for,
 * descend from the commit deployed last (unless an operator deploys it by hand) and be signed by an allowed key. The file
 * of keys is read each time, so a key that was removed no longer counts.
 *
 * @throws errors of the system, such as a lack of descriptors
 */
export async function verifyTip(options: TipOptions, deployment: Deployment): Promise<Tip> {
  try {
    return await examine(options, deployment);
  } catch (error) {
    if (options.stopping.aborted) return { kind: "try-again", detail: "The service is stopping." };
    if (!(error instanceof VerificationError)) throw error;
    const detail = `The signature could not be verified: ${error.message}. Nothing was run. See: hotpush doctor signers`;
    return refuse("signers_unusable", detail);
  }
}

async function examine(options: TipOptions, deployment: Deployment): Promise<Tip> {
  const { signersPath, statePath, stopping } = options;
  const { repoPath, environment: env } = options.script;
  const signers = readSigners(signersPath, repoPath);
  if (typeof signers === "string") return refuse("signers_unusable", `${signers} Nothing was run.`);
  const found = await findTip(options, deployment);
  if ("failure" in found) return refuse("fetch_failed", found.failure);
  const { commit } = found;
  const diverged = await findDivergence(options, deployment, commit);
  if (diverged !== null) return refuse("branch_diverged", diverged);
  const scratchPath = join(statePath, "signers");
  const verifying = { repoPath, scratchPath, signersPath, signers, env, signal: stopping };
  const verdict = await verifyCommit(commit, verifying);
  if (verdict.kind === "good") return { kind: "verified", commit, signer: verdict.signer };
  const problem = signatureProblem(verdict.kind, { commit, signersPath, key: verdict.detail });
  return { kind: "refused", problem };
}

/** A git host reports a push before all of its servers have it, and networks fail: so a failed fetch is retried. */
async function findTip(options: TipOptions, deployment: Deployment): Promise<FetchedTip> {
  let found = await fetchTip(options, deployment);
  // The variable of examples/deploy.sh, if DEPLOY_ENV passes it.
  const pausesS = (options.script.environment.DEPLOY_RETRY_PAUSES || "1 2 3 3").split(/\s+/).map(Number);
  for (const pauseS of pausesS.filter(Number.isFinite)) {
    if (!("failure" in found) || options.stopping.aborted) break;
    await pause(pauseS * 1_000, undefined, { signal: options.stopping });
    found = await fetchTip(options, deployment);
  }
  options.stopping.throwIfAborted();
  return found;
}

/** The newest commit of a branch, or a sentence on why there is none. */
type FetchedTip = { readonly commit: string } | { readonly failure: string };

const fetchTimeoutMs = 10 * 60_000;
/** Housekeeping would go on in the background. */
const noHousekeeping = ["-c", "gc.auto=0", "-c", "maintenance.auto=false"];
const quietly = ["--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--refmap="];

/**
 * Fetches the tip of `ref` and its history into the repository, without moving any ref there. The tip must contain
 * `commit`: a push that names another commit is not of this branch, or arrived before the host's servers agreed.
 */
async function fetchTip(options: TipOptions, { ref, commit }: Deployment): Promise<FetchedTip> {
  const { script, stopping: signal } = options;
  const { repoPath, environment: env, redactor } = script;
  // If the remote has no such branch, `git fetch` takes a tag or another branch whose name ends alike.
  const head = await readRemoteHead(script, ref, { signal });
  if (head.kind === "unknown") return { failure: `Nothing was run: ${head.detail}` };
  const args = [...noHousekeeping, "fetch", ...quietly, "--", remoteOf(env), ref];
  const ending = await runGit(repoPath, args, { env, timeoutMs: fetchTimeoutMs, signal });
  if (ending.kind !== "exited" || ending.code !== 0) {
    const reason =
      ending.kind === "not_found" ? "git is not installed" : (ending.lastLines.at(-1) ?? ending.kind);
    return {
      failure: `git could not fetch ${ref}: ${redactor().text(reason)} Nothing was run. Check address, credentials and network.`,
    };
  }
  if (await isAncestor(repoPath, commit, head.commit, withoutReplacements(env))) {
    return { commit: head.commit };
  }
  return {
    failure: `Commit ${commit.slice(0, 7)} is not in ${ref}, which is at ${head.commit.slice(0, 7)}: a force push has replaced it, or it is gone. Nothing was run. To deploy the current branch: hotpush deploy`,
  };
}

/** Why the tip would move back or replace what is deployed, or null. It checks any branch: another one may be older. */
async function findDivergence(options: TipOptions, { trigger, ref }: Deployment, tip: string) {
  const last = options.findLastDeployed();
  if (last === null || trigger === "manual") return null;
  const { repoPath, environment } = options.script;
  if (await isAncestor(repoPath, last, tip, withoutReplacements(environment))) return null;
  const branch = ref.replace("refs/heads/", "");
  return `${branch} is at ${tip.slice(0, 7)}, which does not descend from ${last.slice(0, 7)}, deployed last: the branch was put back or rewritten. Nothing was run. If that is intended: hotpush deploy ${branch}`;
}

/** The environment in which git ignores replaced objects of the repository. */
function withoutReplacements(env: Readonly<Record<string, string>>): Record<string, string> {
  return { ...env, GIT_NO_REPLACE_OBJECTS: "1" };
}

function refuse(code: Problem["code"], detail: string): Tip {
  return { kind: "refused", problem: { code, detail } };
}
