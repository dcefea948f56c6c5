import { checkThroughProxy } from "../proxy/check.ts";
import { note, outcomeOf, type ServiceOutcome, timed, unchangedOutcome } from "../report/report.ts";
import { removeReplacementRequest, writeReplacementRequest } from "../self-update/replacement-request.ts";
import { deployStack, type StackImages } from "./deploy-stack.ts";
import { rollBackStack } from "./recover-stack.ts";
import type { StackRollout, StackService } from "./stack.ts";
import { isBeingStopped, readStackState, type StackState } from "./swarm-service.ts";
import { runningTasks, waitForServices } from "./wait-for-services.ts";

/**
 * Brings all services to their new state, Hotpush itself last. If one fails, all changed services are rolled back.
 *
 * @param before the stack as it was, to compare with and to roll back to
 * @throws ProblemError that names the failed service and the reason
 */
export async function updateServices(
  rollout: StackRollout,
  images: StackImages,
  before: StackState,
): Promise<readonly ServiceOutcome[]> {
  const { project, own } = rollout;
  const others = project.services.filter(({ name }) => name !== own?.service);
  const itself = project.services.find(({ name }) => name === own?.service);
  const update: StackUpdate = { ...rollout, images, before };
  try {
    const outcomes = others.length === 0 ? [] : await updateAll(update, others);
    return itself ? [...outcomes, await updateItself(update, itself)] : outcomes;
  } catch (error) {
    // The update of Hotpush itself kills this process if the deployment takes longer than the task's grace period. The
    // new task then runs the deployment again and finds everything done.
    const isStopped = await isBeingStopped(rollout).catch(() => false); // The first error is the one to report.
    if (!isStopped) await rollBackStack(rollout, before);
    throw error;
  }
}

interface StackUpdate extends StackRollout {
  readonly images: StackImages;
  readonly before: StackState;
}

/** Deploys `services` and waits for the result. */
async function updateAll(
  update: StackUpdate,
  services: readonly StackService[],
): Promise<readonly ServiceOutcome[]> {
  await deployStack(update, services, update.images);
  const wait = () => waitForServices(update, services, update.before);
  const { result } = await timed(update, "update", wait, "Swarm is done");
  const changed = result.filter(({ outcome }) => outcome !== "unchanged").map(({ service }) => service);
  for (const service of services.filter(({ name }) => changed.includes(name))) {
    await checkThroughProxy({ ...update, service });
  }
  return result;
}

/**
 * Updates the service of this process. With start-first, this process waits for the new task. With stop-first it cannot:
 * the new task starts when this one has ended.
 */
async function updateItself(update: StackUpdate, service: StackService): Promise<ServiceOutcome> {
  const { own, env, statePath, report } = update;
  if (own === null || env.DEPLOY_ID === undefined) {
    // A roll-out by hand in the container would be killed half-way with it. The service waits for its deployments.
    note({ report, service }, "is Hotpush itself, and only updated by a deployment: hotpush deploy");
    return unchangedNow(update, service);
  }
  // The old task gets time to finish its deployment, and must not start another one.
  const request = writeReplacementRequest(statePath, { old: own.id, helper: null, isBySwarm: true });
  try {
    const outcome = await updateInOrder(update, service);
    if (outcome.outcome === "unchanged") removeReplacementRequest(statePath, request);
    return outcome;
  } catch (error) {
    removeReplacementRequest(statePath, request);
    throw error;
  }
}

async function updateInOrder(update: StackUpdate, service: StackService): Promise<ServiceOutcome> {
  const { name } = service;
  const { engine, project, before, report } = update;
  if (service.update.order === "start-first") {
    const [outcome] = await updateAll(update, [service]);
    return outcome ?? unchangedNow(update, service);
  }
  await deployStack(update, [service], update.images);
  const now = await readStackState(engine, project.name);
  if (now.get(name)?.definition === before.get(name)?.definition) return unchangedNow(update, service);
  note({ report, service }, "is Hotpush itself: Swarm replaces it now, and waits for this deployment to end");
  const old = runningTasks(before.get(name));
  return outcomeOf(service, "postponed", { old }, { reason: "order: stop-first" });
}

function unchangedNow({ before }: StackUpdate, service: StackService): ServiceOutcome {
  return unchangedOutcome(service, runningTasks(before.get(service.name)));
}
