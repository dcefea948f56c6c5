import { checkThroughProxy } from "../proxy/check.ts";
import { outcomeOf, type ServiceOutcome, timed, unchangedOutcome } from "../report/report.ts";
import { removeReplacementRequest, writeReplacementRequest } from "../self-update/replacement-request.ts";
import type { StackRollout } from "./context.ts";
import { deployStack, type StackDeployment } from "./deploy-stack.ts";
import { isBeingStopped } from "./own-task.ts";
import { rollBackStack } from "./recover-stack.ts";
import type { StackService } from "./stack.ts";
import { type Snapshot, takeSnapshot, taskName, tasksOf } from "./task.ts";
import { waitForServices } from "./wait-for-services.ts";

/** An update of the stack: what is deployed, and the stack as it was before, to roll back to. */
interface StackUpdate {
  readonly rollout: StackRollout;
  readonly deployment: StackDeployment;
  readonly before: Snapshot;
}

/**
 * Brings all services to their new state, Hotpush itself last. If one fails, all changed services are rolled back.
 *
 * @throws ProblemError that names the failed service and the reason
 */
export async function updateServices(stackUpdate: StackUpdate): Promise<readonly ServiceOutcome[]> {
  const { rollout, before } = stackUpdate;
  const { project, own } = rollout;
  const others = project.services.filter(({ name }) => name !== own?.service);
  const itself = project.services.find(({ name }) => name === own?.service);
  try {
    const outcomes = others.length === 0 ? [] : await update(stackUpdate, others);
    return itself ? [...outcomes, await updateItself(stackUpdate, itself)] : outcomes;
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
  { rollout, deployment, before }: StackUpdate,
  services: readonly StackService[],
): Promise<readonly ServiceOutcome[]> {
  await deployStack(rollout, services, deployment);
  const wait = () => waitForServices(rollout, services, before);
  const { result } = await timed(rollout, "update", wait, () => "Swarm is done");
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
async function updateItself(stackUpdate: StackUpdate, service: StackService): Promise<ServiceOutcome> {
  const { own, env, statePath, report } = stackUpdate.rollout;
  const old = runningTasks(service, stackUpdate.before);
  if (own === null || env.DEPLOY_ID === undefined) {
    // A roll-out by hand in the container would be killed half-way with it. The service waits for its deployments.
    const text = "is Hotpush itself, and only updated by a deployment: hotpush deploy";
    report({ event: "note", service: service.name, text });
    return unchangedOutcome(service, old);
  }
  // The old task gets time to finish its deployment, and must not start another one.
  const request = writeReplacementRequest(statePath, { old: own.id, helper: null, isBySwarm: true });
  try {
    const outcome = await updateInOrder(stackUpdate, service, old);
    if (outcome.outcome === "unchanged") removeReplacementRequest(statePath, request);
    return outcome;
  } catch (error) {
    removeReplacementRequest(statePath, request);
    throw error;
  }
}

type Named = { readonly name: string };

async function updateInOrder(
  stackUpdate: StackUpdate,
  service: StackService,
  old: readonly Named[],
): Promise<ServiceOutcome> {
  const { rollout, deployment, before } = stackUpdate;
  if (service.update.order === "start-first") {
    return (await update(stackUpdate, [service]))[0] ?? unchangedOutcome(service, old);
  }
  await deployStack(rollout, [service], deployment);
  const now = await takeSnapshot(rollout.engine, rollout.project.name);
  const [was, is] = [before, now].map(({ services }) => services.get(service.name)?.definition);
  if (was === is) return unchangedOutcome(service, old);
  const text = "is Hotpush itself: Swarm replaces it now, and waits for this deployment to end";
  rollout.report({ event: "note", service: service.name, text });
  return outcomeOf(service, "postponed", { old }, { reason: "order: stop-first" });
}

function runningTasks(service: StackService, before: Snapshot): readonly Named[] {
  const running = tasksOf(before, service.name).filter(({ state }) => state === "running");
  return running.map((task) => ({ name: taskName(service.name, task) }));
}
