import type { Deployment } from "../deployments/deployment.ts";
import { findLatest, listDeployments } from "../deployments/history.ts";
import { listSteps } from "../deployments/progress.ts";
import { findDeployment } from "../deployments/rows.ts";
import type { ControlContext } from "./context.ts";
import { deploymentJson, stepJson } from "./deployment-json.ts";
import { json, type Reply, refusal } from "./reply.ts";
import type { Asked } from "./routes.ts";

const usualLimit = 20;
/** As many as are kept. */
const largestLimit = 1_000;

export function showHistory({ store }: ControlContext, { query }: Asked): Reply {
  const limit = Number(query.get("limit") ?? usualLimit);
  if (!Number.isSafeInteger(limit) || limit < 1)
    return refusal(400, "The limit is a number from 1 to 1,000.");
  const deployments = listDeployments(store, Math.min(limit, largestLimit));
  return json({ deployments: deployments.map(deploymentJson) });
}

export function showDeployment({ store }: ControlContext, { id }: Asked): Reply {
  const deployment = wantedDeployment(store, id);
  if (deployment === null) return notFound(id);
  return json({ deployment: deploymentJson(deployment), steps: listSteps(store, deployment).map(stepJson) });
}

/** The deployment with `id`, or the one that runs, else the last that did. */
export function wantedDeployment(store: ControlContext["store"], id: number | null): Deployment | null {
  return id === null ? findLatest(store) : findDeployment(store, id);
}

export function notFound(id: number | null): Reply {
  if (id === null) return refusal(404, "Nothing was deployed yet. Push to main, or run: hotpush deploy");
  return refusal(404, `There is no deployment ${id}, or not any more. See: hotpush history`);
}
