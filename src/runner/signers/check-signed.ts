import { join } from "node:path";
import { readSigners } from "../../config/signers-file.ts";
import type { Deployment } from "../../deployments/deployment.ts";
import type { Log } from "../../log.ts";
import { isAncestor, withoutReplacements } from "../../platform/git.ts";
import type { Problem } from "../../problems.ts";
import type { ProjectScript } from "../known-secrets.ts";
import { signatureProblem } from "./judge-signature.ts";
import { VerificationError, verifyCommit } from "./verify-commit.ts";

export interface CheckSignedOptions {
  readonly signersPath: string;
  readonly findLastDeployed: () => string | null;
  readonly script: ProjectScript;
  readonly statePath: string;
  readonly stopping: AbortSignal;
  readonly log: Log;
}

/**
 * Checks whether a branch's tip may be deployed where commits must be signed: it must descend from the commit deployed
 * last (unless an operator deploys it by hand) and be signed by an allowed key. The file of keys is read each time, so a
 * key that was removed no longer counts.
 *
 * @returns why not, or null
 * @throws errors of the system; any error if `stopping` is aborted
 */
export async function checkSigned(
  options: CheckSignedOptions,
  deployment: Deployment,
  commit: string,
): Promise<Problem | null> {
  const { signersPath, script, statePath, stopping: signal } = options;
  const { repoPath, environment: env, user } = script;
  const signers = readSigners(signersPath, repoPath);
  if (typeof signers === "string") return { code: "signers_unusable", detail: `${signers} Nothing was run.` };
  const diverged = await findDivergence(options, deployment, commit);
  if (diverged !== null) return { code: "branch_diverged", detail: diverged };
  const scratchPath = join(statePath, "signers");
  try {
    const verdict = await verifyCommit(commit, {
      repoPath,
      scratchPath,
      signersPath,
      signers,
      env,
      user,
      signal,
    });
    if (verdict.kind !== "good")
      return signatureProblem(verdict.kind, { commit, signersPath, key: verdict.detail });
    logVerified(options.log, deployment.id, commit, verdict.signer);
    return null;
  } catch (error) {
    if (signal.aborted || !(error instanceof VerificationError)) throw error;
    const detail = `The signature could not be verified: ${error.message}. Nothing was run. See: hotpush doctor signers`;
    return { code: "signers_unusable", detail };
  }
}

/** Why the tip would move back or replace what is deployed, or null. It checks any branch: another one may be older. */
async function findDivergence(
  { findLastDeployed, script }: CheckSignedOptions,
  { trigger, ref }: Deployment,
  tip: string,
) {
  const last = findLastDeployed();
  if (last === null || trigger === "manual") return null;
  const { repoPath, environment, user } = script;
  if (await isAncestor(repoPath, last, tip, { env: withoutReplacements(environment), user })) return null;
  const branch = ref.replace("refs/heads/", "");
  return `${branch} is at ${tip.slice(0, 7)}, which does not descend from ${last.slice(0, 7)}, deployed last: the branch was put back or rewritten. Nothing was run. If that is intended: hotpush deploy ${branch}`;
}

function logVerified(log: Log, deployment: number, commit: string, signer: string): void {
  const fields = { event: "deployment.verified", deployment, commit, signer };
  log.info(fields, `Commit ${commit.slice(0, 7)} is signed by ${signer}`);
}
