import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { readSigners } from "../../config/signers-file.ts";
import type { Deployment } from "../../deployments/deployment.ts";
import { isAncestor, runGit } from "../../platform/git.ts";
import type { Problem } from "../../problems.ts";
import { childEnvironment } from "../environment.ts";
import { createScriptRedactor, type SecretSources } from "../known-secrets.ts";
import { readRemoteHead } from "../repository.ts";
import type { SignatureFault } from "./judge-signature.ts";
import { VerificationError, verifyCommit } from "./verify-commit.ts";

/** Which commits may be deployed. */
export interface Signing {
  readonly signersPath: string;
  /** The commit that was deployed last with success, or null if none was. */
  readonly findLastDeployed: () => string | null;
  /** Aborted when the service stops. */
  readonly stopping: AbortSignal;
}

export interface TipOptions extends Signing, SecretSources {
  readonly statePath: string;
}

export type Tip =
  | { readonly kind: "verified"; readonly commit: string; readonly signer: string }
  | { readonly kind: "refused"; readonly problem: Problem }
  | { readonly kind: "try-again"; readonly detail: string };

export type VerifyTip = (deployment: Deployment) => Promise<Tip>;

/**
 * Fetches the branch of a deployment and finds out whether its tip may be deployed: it contains the commit asked for,
 * descends from what was deployed last (unless an operator deploys it by hand) and is signed by an allowed key. The file of
 * keys is read each time, so a key that is taken out counts no more.
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
  const { repoPath, signersPath, statePath, stopping } = options;
  const signers = readSigners(signersPath, repoPath);
  if (typeof signers === "string") return refuse("signers_unusable", `${signers} Nothing was run.`);
  const found = await findTip(options, deployment);
  if ("failure" in found) return refuse("fetch_failed", found.failure);
  const { commit } = found;
  const diverged = await findDivergence(options, deployment, commit);
  if (diverged !== null) return refuse("branch_diverged", diverged);
  const env = childEnvironment(options);
  const verifying = {
    repoPath,
    scratchPath: join(statePath, "signers"),
    signersPath,
    signers,
    env,
    signal: stopping,
  };
  const verdict = await verifyCommit(commit, verifying);
  if (verdict.kind === "good") return { kind: "verified", commit, signer: verdict.signer };
  return {
    kind: "refused",
    problem: signatureProblem(verdict.kind, { commit, signersPath, key: verdict.detail }),
  };
}

/** A git host reports a push before all of its servers have it, and networks fail: it is tried for a while. */
async function findTip(options: TipOptions, deployment: Deployment) {
  const asking = { ...options, signal: options.stopping, redact: createScriptRedactor(options)().text };
  let found = await fetchTip(asking, deployment);
  // By the name that examples/deploy.sh takes, if DEPLOY_ENV lets it have it.
  const pausesS = (childEnvironment(options).DEPLOY_RETRY_PAUSES || "1 2 3 3").split(/\s+/).map(Number);
  for (const pauseS of pausesS.filter(Number.isFinite)) {
    if (!("failure" in found) || options.stopping.aborted) break;
    await pause(pauseS * 1_000, undefined, { signal: options.stopping });
    found = await fetchTip(asking, deployment);
  }
  options.stopping.throwIfAborted();
  return found;
}

/** Why the tip would put the branch back or aside, or null. Of any branch: another one may be at something older. */
async function findDivergence(options: TipOptions, { trigger, ref }: Deployment, tip: string) {
  const last = options.findLastDeployed();
  if (last === null || trigger === "manual") return null;
  if (await isAncestor(options.repoPath, last, tip, asItIs(childEnvironment(options)))) return null;
  const branch = ref.replace("refs/heads/", "");
  return `${branch} is at ${tip.slice(0, 7)}, which does not descend from ${last.slice(0, 7)}, deployed last: the branch was put back or rewritten. Nothing was run. If that is intended: hotpush deploy ${branch}`;
}

const advice: Readonly<Record<SignatureFault, readonly [Problem["code"], string, string]>> = {
  unsigned: [
    "commit_unsigned",
    "is not signed",
    "Sign it and push again: git commit --amend --no-edit --gpg-sign; git config commit.gpgSign true signs all later ones.",
  ],
  unknown: [
    "signer_unknown",
    "is signed by a key that is not allowed",
    "Find out who pushed it. If the key is to be trusted, add it to that file; else sign the commit with one that is.",
  ],
  expired: [
    "signer_expired",
    "is signed by a key that is not valid now, or was not when it signed",
    "Renew the key, put it into that file, and sign the commit with it.",
  ],
  revoked: [
    "signer_revoked",
    "is signed by a key that was revoked",
    "Find out who pushed it: somebody may use a stolen key. Sign the commit with another key.",
  ],
  bad: [
    "signature_bad",
    "has a signature that does not match its content",
    "Find out who pushed it: the commit was changed after it was signed.",
  ],
};

/** Why a commit may not be deployed, and what to do. */
export function signatureProblem(
  fault: SignatureFault,
  {
    commit,
    signersPath,
    key,
  }: { readonly commit: string; readonly signersPath: string; readonly key: string },
): Problem {
  const [code, what, next] = advice[fault];
  const named = key === "" ? "" : ` (${key})`;
  const detail = `Commit ${commit.slice(0, 7)} ${what}${named}. ALLOWED_SIGNERS is ${signersPath}. Nothing was run. ${next}`;
  return { code, detail };
}

function refuse(code: Problem["code"], detail: string): Tip {
  return { kind: "refused", problem: { code, detail } };
}

export interface FetchOptions extends SecretSources {
  readonly signal: AbortSignal;
  /** Takes secrets out of what git says. */
  readonly redact: (text: string) => string;
}

/** The newest commit of a branch, or why there is none as a sentence. */
export type FetchedTip = { readonly commit: string } | { readonly failure: string };

const timeoutMs = 10 * 60_000;

/**
 * Brings the tip of `ref` and its history into the repository, without moving any ref there. The tip must contain
 * `commit`: a push that names another one is not of this branch, or came before the host's servers agreed.
 */
export async function fetchTip(
  options: FetchOptions,
  { ref, commit }: { readonly ref: string; readonly commit: string },
): Promise<FetchedTip> {
  // Asked first: `git fetch` takes a tag or another branch whose name ends alike if the remote has no such branch.
  const head = await readRemoteHead(options, ref);
  if (head.kind === "unknown") return { failure: `Nothing was run: ${head.detail}` };
  const env = childEnvironment(options);
  const quiet = ["--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--refmap="];
  const ending = await runGit(
    options.repoPath,
    // Housekeeping would go on in the background.
    [
      "-c",
      "gc.auto=0",
      "-c",
      "maintenance.auto=false",
      "fetch",
      ...quiet,
      "--",
      env.DEPLOY_REMOTE || "origin",
      ref,
    ],
    { env, timeoutMs, signal: options.signal },
  );
  if (ending.kind !== "exited" || ending.code !== 0) {
    const reason =
      ending.kind === "not_found" ? "git is not installed" : (ending.lastLines.at(-1) ?? ending.kind);
    return {
      failure: `git could not fetch ${ref}: ${options.redact(reason)} Nothing was run. Check address, credentials and network.`,
    };
  }
  if (await isAncestor(options.repoPath, commit, head.commit, asItIs(env))) return { commit: head.commit };
  return {
    failure: `Commit ${commit.slice(0, 7)} is not in ${ref}, which is at ${head.commit.slice(0, 7)}: a force push has replaced it, or it is gone. Nothing was run. To deploy what the branch is now: hotpush deploy`,
  };
}

/** The environment in which git takes the history as it is, whatever replacements the repository has. */
export function asItIs(env: Readonly<Record<string, string>>): Record<string, string> {
  return { ...env, GIT_NO_REPLACE_OBJECTS: "1" };
}
