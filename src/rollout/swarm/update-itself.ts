import { type ServiceOutcome, unchanged } from "../report/report.ts";
import { removeReplacementRequest, writeReplacementRequest } from "../self-update/replacement-request.ts";
import type { StackRollout } from "./context.ts";
import { type Snapshot, takeSnapshot, tasksOf } from "./snapshot.ts";
import type { StackService } from "./stack.ts";
import { taskName } from "./task.ts";

/** How services are updated. */
export interface Updates {
  readonly deploy: (services: readonly StackService[]) => Promise<void>;
  /** Deploys them and waits for what becomes of it. */
  readonly update: (services: readonly StackService[]) => Promise<readonly ServiceOutcome[]>;
}

/**
 * Updates the service that this process is in. Where the new task starts first, this process sees it take over. Else
 * nobody waits: the new task starts when this one has ended.
 */
export async function updateItself(
  rollout: StackRollout,
  service: StackService,
  before: Snapshot,
  updates: Updates,
): Promise<ServiceOutcome> {
  const { own, env, statePath } = rollout;
  if (own === null || env.DEPLOY_ID === undefined) return leaveAlone(rollout, service, before);
  // The old task is given time to end its deployment; it is to begin no other one.
  const request = writeReplacementRequest(statePath, { old: own.id, helper: null, isBySwarm: true });
  try {
    const outcome = await updateInOrder(rollout, service, before, updates);
    if (outcome.outcome === "unchanged") removeReplacementRequest(statePath, request);
    return outcome;
  } catch (error) {
    removeReplacementRequest(statePath, request);
    throw error;
  }
}

/** By hand in the container, this process would end with it, half-way. A deployment is seen to its end. */
function leaveAlone({ report }: StackRollout, service: StackService, before: Snapshot): ServiceOutcome {
  const text = "is Hotpush itself, and only updated by a deployment: hotpush deploy";
  report({ event: "note", service: service.name, text });
  return unchanged(service, runningTasks(service, before));
}

async function updateInOrder(
  { engine, project, report }: StackRollout,
  service: StackService,
  before: Snapshot,
  { deploy, update }: Updates,
): Promise<ServiceOutcome> {
  const old = runningTasks(service, before);
  if (service.update.order === "start-first") return (await update([service]))[0] ?? unchanged(service, old);
  await deploy([service]);
  const now = await takeSnapshot(engine, project.name);
  const [was, is] = [before, now].map(({ services }) => services.get(service.name)?.definition);
  if (was === is) return unchanged(service, old);
  const text = "is Hotpush itself: Swarm replaces it now, and waits for this deployment to end";
  report({ event: "note", service: service.name, text });
  const nothing = { healthyAfterMs: null, drainedMs: null, downtimeMs: null, reason: "order: stop-first" };
  return {
    service: service.name,
    outcome: "postponed",
    old: old.map(({ name }) => name),
    new: [],
    ...nothing,
  };
}

function runningTasks(service: StackService, before: Snapshot): readonly { readonly name: string }[] {
  const running = tasksOf(before, service.name).filter(({ state }) => state === "running");
  return running.map((task) => ({ name: taskName(service.name, task) }));
}
