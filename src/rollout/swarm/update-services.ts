import { checkThroughProxy } from "../proxy/check.ts";
import { postponed, type ServiceOutcome, timed, unchanged } from "../report/report.ts";
import { removeReplacementRequest, writeReplacementRequest } from "../self-update/replacement-request.ts";
import type { StackRollout } from "./context.ts";
import { deployStack, type StackDeployment } from "./deploy-stack.ts";
import { isBeingStopped } from "./own-task.ts";
import { rollBackStack } from "./recover-stack.ts";
import type { StackService } from "./stack.ts";
import { type Snapshot, takeSnapshot, taskName, tasksOf } from "./task.ts";
import { waitForServices } from "./wait-for-services.ts";

/**
 * Brings all services to their new state, Hotpush itself last. If one fails, all changed services are rolled back.
 *
 * @param before the stack as it was, to roll back to
 * @throws ProblemError that names the failed service and the reason
 */
export async function updateServices(
  rollout: StackRollout,
  deployment: StackDeployment,
  before: Snapshot,
): Promise<readonly ServiceOutcome[]> {
  const { project, own } = rollout;
  const others = project.services.filter(({ name }) => name !== own?.service);
  const itself = project.services.find(({ name }) => name === own?.service);
  try {
    const outcomes = others.length === 0 ? [] : await update(rollout, others, deployment, before);
    return itself ? [...outcomes, await updateItself(rollout, itself, deployment, before)] : outcomes;
  } catch (error) {
    // The update of Hotpush itself kills this process if the deployment takes longer than the task's grace period. The
    // new task then runs the deployment again and finds everything done.
    const isStopped = await isBeingStopped(rollout).catch(() => false); // The first error is the one to report.
    if (!isStopped) await rollBackStack(rollout, before);
    throw error;
  }
}

/** Deploys `services` and waits for the result. */
async function update(
  rollout: StackRollout,
  services: readonly StackService[],
  deployment: StackDeployment,
  before: Snapshot,
): Promise<readonly ServiceOutcome[]> {
  await deployStack(rollout, services, deployment);
  const wait = () => waitForServices(rollout, services, before);
  const { result } = await timed(rollout.report, null, "update", wait, () => "Swarm is done");
  for (const service of services) {
    const outcome = result.find((one) => one.service === service.name)?.outcome;
    if (outcome !== "unchanged") await checkThroughProxy(rollout, service);
  }
  return result;
}

/**
 * Updates the service of this process. With start-first, this process waits for the new task. With stop-first it cannot:
 * the new task starts when this one has ended.
 */
async function updateItself(
  rollout: StackRollout,
  service: StackService,
  deployment: StackDeployment,
  before: Snapshot,
): Promise<ServiceOutcome> {
  const { own, env, statePath } = rollout;
  if (own === null || env.DEPLOY_ID === undefined) return leaveAlone(rollout, service, before);
  // The old task gets time to finish its deployment, and must not start another one.
  const request = writeReplacementRequest(statePath, { old: own.id, helper: null, isBySwarm: true });
  try {
    const outcome = await updateInOrder(rollout, service, deployment, before);
    if (outcome.outcome === "unchanged") removeReplacementRequest(statePath, request);
    return outcome;
  } catch (error) {
    removeReplacementRequest(statePath, request);
    throw error;
  }
}

/** A roll-out by hand in the container would be killed half-way with it. The service waits for its deployments. */
function leaveAlone({ report }: StackRollout, service: StackService, before: Snapshot): ServiceOutcome {
  const text = "is Hotpush itself, and only updated by a deployment: hotpush deploy";
  report({ event: "note", service: service.name, text });
  return unchanged(service, runningTasks(service, before));
}

async function updateInOrder(
  rollout: StackRollout,
  service: StackService,
  deployment: StackDeployment,
  before: Snapshot,
): Promise<ServiceOutcome> {
  const old = runningTasks(service, before);
  if (service.update.order === "start-first") {
    const [outcome] = await update(rollout, [service], deployment, before);
    return outcome ?? unchanged(service, old);
  }
  await deployStack(rollout, [service], deployment);
  const now = await takeSnapshot(rollout.engine, rollout.project.name);
  const [was, is] = [before, now].map(({ services }) => services.get(service.name)?.definition);
  if (was === is) return unchanged(service, old);
  const text = "is Hotpush itself: Swarm replaces it now, and waits for this deployment to end";
  rollout.report({ event: "note", service: service.name, text });
  return postponed(service, old, "order: stop-first");
}

function runningTasks(service: StackService, before: Snapshot): readonly { readonly name: string }[] {
  const running = tasksOf(before, service.name).filter(({ state }) => state === "running");
  return running.map((task) => ({ name: taskName(service.name, task) }));
}
