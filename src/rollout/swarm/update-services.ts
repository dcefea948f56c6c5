import { writeReplacementRequest } from "../own-container/replacement-request.ts";
import { checkThroughProxy } from "../proxy/check-through-proxy.ts";
import { type ServiceOutcome, timed, unchanged } from "../report/report.ts";
import type { StackRollout } from "./context.ts";
import { type Deployment, deployStack } from "./deploy-stack.ts";
import { goBack } from "./go-back.ts";
import { type Snapshot, takeSnapshot, tasksOf } from "./snapshot.ts";
import type { StackService } from "./stack.ts";
import { taskName } from "./task.ts";
import { waitForServices } from "./wait-for-services.ts";

/**
 * Brings all services to their new state, Hotpush itself last. Where one fails, all that were changed go back.
 *
 * @param before the stack as it was, to go back to
 * @throws ProblemError that says which service failed, and why
 */
export async function updateServices(
  rollout: StackRollout,
  deployment: Deployment,
  before: Snapshot,
): Promise<readonly ServiceOutcome[]> {
  const { project, own, signal } = rollout;
  const isItself = ({ name }: StackService) => name === own?.service;
  const others = project.services.filter((service) => !isItself(service));
  const outcomes = await update(rollout, others, deployment, before).catch(async (error: unknown) => {
    await goBack(rollout, before);
    throw error;
  });
  const itself = project.services.find(isItself);
  if (!itself) return outcomes;
  const last = await updateItself(rollout, itself, deployment, before).catch(async (error: unknown) => {
    // The update itself ends this process where the deployment takes longer than its task is given. The new task runs
    // the deployment again, and finds all of this done.
    if (!signal.aborted) await goBack(rollout, before);
    throw error;
  });
  return [...outcomes, last];
}

async function update(
  rollout: StackRollout,
  services: readonly StackService[],
  deployment: Deployment,
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

/** Where the new task starts first, this process sees it take over. Else nobody waits: the new task waits for this one to end. */
async function updateItself(
  rollout: StackRollout,
  service: StackService,
  deployment: Deployment,
  before: Snapshot,
): Promise<ServiceOutcome> {
  const { engine, project, report, own, statePath } = rollout;
  if (service.update.order === "start-first") {
    const [outcome] = await update(rollout, [service], deployment, before);
    return outcome ?? unchanged(service, []);
  }
  await deployStack(rollout, [service], deployment);
  const now = await takeSnapshot(engine, project.name);
  const [was, is] = [before, now].map(({ services }) => services.get(service.name)?.definition);
  const names = tasksOf(before, service.name)
    .filter(({ state }) => state === "running")
    .map((task) => taskName(service.name, task));
  if (was === is) {
    return unchanged(
      service,
      names.map((name) => ({ name })),
    );
  }
  // The old task is given time to end its deployment: it is to begin no other one.
  if (own) writeReplacementRequest(statePath, { old: own.id, helper: null, isBySwarm: true });
  const text = "is Hotpush itself: Swarm replaces it when this deployment has ended (order: stop-first)";
  report({ event: "note", service: service.name, text });
  const nothing = { healthyAfterMs: null, drainedMs: null, downtimeMs: null, reason: "order: stop-first" };
  return { service: service.name, outcome: "postponed", old: names, new: [], ...nothing };
}
