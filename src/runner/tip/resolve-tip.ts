import type { Deployment } from "../../deployments/deployment.ts";
import type { Log } from "../../log.ts";
import type { Problem } from "../../problems.ts";
import type { ProjectScript } from "../known-secrets.ts";
import { fetchTip } from "./fetch-tip.ts";

/** Why a branch is fetched before a script starts, and what is checked then. */
export interface TipRules {
  /** The file of ALLOWED_SIGNERS; null: commits need no signature. */
  readonly signersPath: string | null;
  /** Whether pushes come from a process that may be in an attacker's hands. */
  readonly distrustsPushes: boolean;
  /** The commit of the last successful deployment, or null if there was none. */
  readonly findLastDeployed: () => string | null;
  /** Aborted when the service stops. */
  readonly stopping: AbortSignal;
}

export interface TipOptions {
  readonly rules: TipRules;
  readonly script: ProjectScript;
  readonly statePath: string;
  readonly log: Log;
}

/** The commit that a script must deploy. */
export interface ExactTip {
  readonly kind: "exact";
  readonly commit: string;
  /** Whether its signature was verified. */
  readonly isSigned: boolean;
}

export type Tip =
  | ExactTip
  | { readonly kind: "refused"; readonly problem: Problem }
  | { readonly kind: "try-again"; readonly detail: string };

/**
 * Fetches the branch of a deployment and decides whether its tip may be deployed: it must contain the commit asked for,
 * and if ALLOWED_SIGNERS is set, be signed. So nothing of a push decides what runs, but that its branch is looked at.
 *
 * @throws errors of the system, such as a lack of descriptors
 */
export async function resolveTip(options: TipOptions, deployment: Deployment): Promise<Tip> {
  try {
    return await examine(options, deployment);
  } catch (error) {
    if (options.rules.stopping.aborted) return { kind: "try-again", detail: "The service is stopping." };
    throw error;
  }
}

async function examine({ rules, script, ...rest }: TipOptions, deployment: Deployment): Promise<Tip> {
  const { signersPath, stopping } = rules;
  const found = await fetchTip(script, deployment, stopping);
  if ("failure" in found)
    return { kind: "refused", problem: { code: "fetch_failed", detail: found.failure } };
  const { commit } = found;
  if (signersPath === null) return { kind: "exact", commit, isSigned: false };
  // Most projects need no signatures, so this is loaded with the first deployment that needs one.
  const { checkSigned } = await import("../signers/check-signed.ts");
  const problem = await checkSigned({ ...rules, ...rest, script, signersPath }, deployment, commit);
  return problem === null ? { kind: "exact", commit, isSigned: true } : { kind: "refused", problem };
}
