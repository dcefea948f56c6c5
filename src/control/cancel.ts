import { findRunning, listWaiting } from "../deployments/history.ts";
import { findDeployment } from "../deployments/rows.ts";
import { isFinished } from "../deployments/states.ts";
import type { ControlContext } from "./context.ts";
import { deploymentJson } from "./deployment-json.ts";
import { notFound } from "./history.ts";
import { json, type Reply, refusal } from "./reply.ts";
import { reportedName } from "./request-body.ts";
import type { Asked } from "./routes.ts";

/** Cancels a deployment: one that waits at once, one that runs by ending its script, which takes a moment. */
export function cancelDeployment({ store, queue, log }: ControlContext, asked: Asked): Reply {
  const deployment =
    asked.id === null
      ? (findRunning(store) ?? listWaiting(store)[0] ?? null)
      : findDeployment(store, asked.id);
  if (deployment === null) return asked.id === null ? refusal(409, nothing) : notFound(asked.id);
  const { id, state } = deployment;
  if (isFinished(state)) {
    return refusal(
      409,
      `Deployment ${id} is ${state.replace("_", " ")} already, so there is nothing to cancel.`,
    );
  }
  const requestedBy = reportedName(asked.body);
  if (!queue.cancel(id, requestedBy)) {
    return refusal(
      409,
      `Deployment ${id} cannot be cancelled in this very moment (${state}). Try again in a second.`,
    );
  }
  log.info(
    { event: "control.cancel", deployment: id, requestedBy },
    `Deployment ${id} is cancelled by a command`,
  );
  return json({ deployment: deploymentJson(findDeployment(store, id) ?? deployment) }, 202);
}

const nothing = "Nothing runs and nothing waits, so there is nothing to cancel.";
