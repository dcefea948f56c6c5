import { findDeployment } from "../deployments/deployment.ts";
import { findRunning, listWaiting } from "../deployments/history.ts";
import { isFinished } from "../deployments/states.ts";
import { deploymentJson } from "./deployment-json.ts";
import { notFound } from "./history.ts";
import { jsonReply, type Route, refusal, reportedName } from "./route.ts";

/** Cancels a deployment: a queued one at once; a running one by terminating its script, which takes a moment. */
export const cancelDeployment: Route = ({ store, queue, log }, { id: wantedId, body }) => {
  const deployment =
    wantedId === null
      ? (findRunning(store) ?? listWaiting(store)[0] ?? null)
      : findDeployment(store, wantedId);
  if (deployment === null) return wantedId === null ? refusal(409, nothingToCancel) : notFound(wantedId);
  const { id, state } = deployment;
  if (isFinished(state)) {
    const ending = state.replace("_", " ");
    return refusal(409, `Deployment ${id} is ${ending} already, so there is nothing to cancel.`);
  }
  const requestedBy = reportedName(body);
  if (!queue.cancel(id, requestedBy)) {
    return refusal(409, `Deployment ${id} cannot be cancelled right now (${state}). Try again in a second.`);
  }
  const text = `Deployment ${id} is cancelled by a command`;
  log.info({ event: "control.cancel", deployment: id, requestedBy }, text);
  return jsonReply({ deployment: deploymentJson(findDeployment(store, id) ?? deployment) }, 202);
};

const nothingToCancel = "No deployment runs or waits, so there is nothing to cancel.";
