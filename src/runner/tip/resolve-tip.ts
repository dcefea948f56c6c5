import type { Deployment, Skip, SkipRules } from "../../deployments/deployment.ts";
import type { Log } from "../../log.ts";
import type { Problem } from "../../problems.ts";
import type { ProjectScript } from "../known-secrets.ts";
import { fetchTip } from "./fetch-tip.ts";
import { findSkip } from "./find-skip.ts";

/** Why a branch is fetched before a script starts, and what is checked then. */
export interface TipRules {
  /** DEPLOY_PATHS; none: every push is deployed. */
  readonly paths: readonly string[];
  /** Which rules may skip a deployment; null: none. */
  readonly findSkipRules: (deployment: Deployment) => SkipRules | null;
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
  /** Whatever the script fetches. */
  | { readonly kind: "any" }
  | { readonly kind: "skipped"; readonly skip: Skip }
  | { readonly kind: "refused"; readonly problem: Problem }
  | { readonly kind: "try-again"; readonly detail: string };

/** Whether the script may only deploy a tip that was fetched before. */
export function needsTip({ signersPath, distrustsPushes }: TipRules): boolean {
  return signersPath !== null || distrustsPushes;
}

/**
 * Fetches the branch of a deployment and decides whether its script has to run, and which commit it may deploy. If
 * `needsTip`, the tip must contain the commit asked for, and be signed if ALLOWED_SIGNERS is set: so nothing of a push
 * decides what runs, but that its branch is looked at.
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

async function examine(options: TipOptions, deployment: Deployment): Promise<Tip> {
  const { rules, script } = options;
  const found = await fetchTip(script, deployment, rules.stopping);
  if ("failure" in found) {
    // A script that needs no tip fetches by itself, and fails by itself.
    if (!needsTip(rules)) return { kind: "any" };
    return { kind: "refused", problem: { code: "fetch_failed", detail: found.failure } };
  }
  const skipRules = rules.findSkipRules(deployment);
  const skip = skipRules && (await findSkip({ script, paths: rules.paths, rules: skipRules }, deployment));
  if (skip !== null) return { kind: "skipped", skip };
  return needsTip(rules) ? await judgeTip(options, deployment, found.commit) : { kind: "any" };
}

async function judgeTip(
  { rules, ...rest }: TipOptions,
  deployment: Deployment,
  commit: string,
): Promise<Tip> {
  const { signersPath } = rules;
  if (signersPath === null) return { kind: "exact", commit, isSigned: false };
  // Most projects need no signatures, so this is loaded with the first deployment that needs one.
  const { checkSigned } = await import("../signers/check-signed.ts");
  const problem = await checkSigned({ ...rules, ...rest, signersPath }, deployment, commit);
  return problem === null ? { kind: "exact", commit, isSigned: true } : { kind: "refused", problem };
}
