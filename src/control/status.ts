import type { CatchUpReport } from "../deployments/catch-up.ts";
import { findRunning, listLastOfBranches, listWaiting } from "../deployments/history.ts";
import { listSteps } from "../deployments/progress.ts";
import { readVersion } from "../version.ts";
import { type DeploymentJson, deploymentJson, instant, type StepJson, stepJson } from "./deployment-json.ts";
import { type ControlContext, jsonReply, type Route } from "./route.ts";
import { judgeSecrets, type SecretsJson } from "./secrets.ts";

/** What `hotpush status --json` prints; docs/cli.md has each member. */
export interface StatusJson {
  readonly version: string;
  readonly startedAt: string;
  readonly address: string;
  readonly port: number;
  readonly repoPath: string;
  /** The branches that are deployed. */
  readonly branches: readonly string[];
  readonly statePath: string;
  /** null if nothing runs; `step` is null before the first one. */
  readonly running: { readonly deployment: DeploymentJson; readonly step: StepJson | null } | null;
  readonly waiting: readonly DeploymentJson[];
  readonly last: readonly DeploymentJson[];
  readonly health: { readonly isHealthy: boolean; readonly detail: string | null };
  readonly catchUp: CatchUpJson;
  readonly secrets: SecretsJson;
}

export interface CatchUpJson {
  readonly intervalMs: number;
  readonly lookedAt: string | null;
  readonly failure: string | null;
}

export const showStatus: Route = (context) => {
  const { store, startedAtMs, address, repoPath, refs, statePath, catchUp, secretUses } = context;
  const fault = context.findFault();
  return jsonReply({
    version: readVersion(),
    startedAt: instant(startedAtMs),
    address: address.address,
    port: address.port,
    repoPath,
    branches: refs.map((ref) => ref.replace("refs/heads/", "")),
    statePath,
    running: runningJson(context),
    waiting: listWaiting(store).map(deploymentJson),
    last: listLastOfBranches(store).map(deploymentJson),
    health: { isHealthy: fault === null, detail: fault },
    catchUp: catchUpJson(catchUp.report()),
    secrets: judgeSecrets(secretUses.read(), Date.now()),
  } satisfies StatusJson);
};

function runningJson({ store }: ControlContext): StatusJson["running"] {
  const deployment = findRunning(store);
  if (deployment === null) return null;
  const step = listSteps(store, deployment).findLast(({ attempt }) => attempt === deployment.attempts);
  return { deployment: deploymentJson(deployment), step: step ? stepJson(step) : null };
}

function catchUpJson({ intervalMs, lookedAtMs, failure }: CatchUpReport): CatchUpJson {
  return { intervalMs, lookedAt: lookedAtMs === null ? null : instant(lookedAtMs), failure };
}
