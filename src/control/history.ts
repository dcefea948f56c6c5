import { type Deployment, findDeployment } from "../deployments/deployment.ts";
import { findLatest, listDeployments } from "../deployments/history.ts";
import { isState } from "../deployments/states.ts";
import { listSteps } from "../deployments/steps.ts";
import { logBytes, logPath } from "../runner/log-file.ts";
import { type DeploymentJson, deploymentJson, type StepJson, stepJson } from "./deployment-json.ts";
import {
  type ControlContext,
  type ControlReply,
  type ControlRequest,
  jsonReply,
  type Route,
  refusal,
} from "./route.ts";

const usualLimit = 20;
/** As many as are kept. */
const largestLimit = 1_000;

/** What `hotpush history --json` prints. */
export interface HistoryJson {
  readonly deployments: readonly DeploymentJson[];
  /** Older ones follow with `before` of this number; null: these were all. */
  readonly next: number | null;
}

/** Of one project, or of all. */
export const showHistory = (
  { store }: Pick<ControlContext, "store">,
  { query }: ControlRequest,
): ControlReply => {
  const limit = Number(query.get("limit") ?? usualLimit);
  if (!Number.isSafeInteger(limit) || limit < 1)
    return refusal(400, "The limit must be a number from 1 to 1,000.");
  const before = Number(query.get("before") ?? Number.MAX_SAFE_INTEGER);
  if (!Number.isSafeInteger(before)) return refusal(400, "`before` must be the number of a deployment.");
  const state = query.get("state");
  if (state !== null && !isState(state)) return refusal(400, `There is no state ${state}.`);
  const wanted = { limit: Math.min(limit, largestLimit) + 1, before, ...(state !== null && { state }) };
  const found = listDeployments(store, wanted);
  const deployments = found.slice(0, wanted.limit - 1).map(deploymentJson);
  const next = found.length === wanted.limit ? (deployments.at(-1)?.id ?? null) : null;
  return jsonReply({ deployments, next } satisfies HistoryJson);
};

/** One deployment, with its steps and how long its log is. */
export interface OneDeploymentJson {
  readonly deployment: DeploymentJson;
  readonly steps: readonly StepJson[];
  readonly logBytes: number;
}

export const showDeployment: Route = ({ store, logStatePath }, { id }) => {
  const deployment = wantedDeployment(store, id);
  if (deployment === null) return notFound(id);
  return jsonReply({
    deployment: deploymentJson(deployment),
    steps: listSteps(store, deployment).map(stepJson),
    logBytes: logBytes(logPath(logStatePath, deployment.id)),
  } satisfies OneDeploymentJson);
};

/** The deployment with `id`; without one, the deployment that runs, else the last that did. */
export function wantedDeployment(store: ControlContext["store"], id: number | null): Deployment | null {
  return id === null ? findLatest(store) : findDeployment(store, id);
}

export function notFound(id: number | null): ControlReply {
  if (id === null) return refusal(404, "Nothing was deployed yet. Push to main, or run: hotpush deploy");
  return refusal(404, `There is no deployment ${id}; it may have been pruned. See: hotpush history`);
}
