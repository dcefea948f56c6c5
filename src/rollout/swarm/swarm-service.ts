import { formatDuration } from "#config/duration";
import { type Engine, filteredBy, getJson } from "#platform/docker/engine";
import type { StackService } from "./stack.ts";

/** The services of a stack at one moment, by their names in the stack file. */
export type StackState = ReadonlyMap<string, SwarmService>;

/** A service of a stack, as Swarm reports it at one moment. */
export type SwarmService = Readonly<ReturnType<typeof readService>>;

/** A task: one container that Swarm wants, has or had. */
export type Task = Readonly<ReturnType<typeof readTask>>;

export interface UpdateStatus {
  readonly state:
    | "updating"
    | "paused"
    | "completed"
    | "rollback_started"
    | "rollback_paused"
    | "rollback_completed";
  readonly startedAt: string;
  readonly message: string;
}

/** Reads the services of `stack` with their tasks. */
export async function readStackState(engine: Engine, stack: string): Promise<StackState> {
  const [services, tasks] = await Promise.all([
    listOfStack<ListedService>(engine, stack, "/services?status=true&"),
    listOfStack<ListedTask>(engine, stack, "/tasks?"),
  ]);
  const oldestFirst = [...tasks].sort((one, other) => one.CreatedAt.localeCompare(other.CreatedAt));
  return new Map(
    services.map((service) => {
      const name = service.Spec.Name.slice(stack.length + 1);
      const own = oldestFirst.filter(({ ServiceID }) => ServiceID === service.ID);
      return [name, readService(name, service, own)];
    }),
  );
}

/** Gets a list from the engine at `path`: the entries that belong to `stack` and match `filters`. */
export function listOfStack<Entry>(
  engine: Engine,
  stack: string,
  path: string,
  filters: Readonly<Record<string, readonly string[]>> = {},
): Promise<readonly Entry[]> {
  const label = [`com.docker.stack.namespace=${stack}`];
  return getJson<readonly Entry[]>(engine, `${path}${filteredBy({ label, ...filters })}`);
}

interface ServiceSpec {
  readonly Name: string;
  readonly Labels?: Readonly<Record<string, string>>;
  readonly TaskTemplate: {
    readonly ContainerSpec?: { readonly Image: string };
    readonly Placement?: Readonly<Record<string, unknown>>;
  };
  readonly EndpointSpec?: unknown;
  readonly Mode: Readonly<Record<string, unknown>>;
}

interface ListedService {
  readonly ID: string;
  readonly Version: { readonly Index: number };
  readonly Spec: ServiceSpec;
  readonly PreviousSpec?: ServiceSpec;
  readonly UpdateStatus?: {
    readonly State?: UpdateStatus["state"];
    readonly StartedAt?: string;
    readonly Message?: string;
  };
  readonly ServiceStatus?: { readonly RunningTasks: number; readonly DesiredTasks: number };
}

function readService(name: string, listed: ListedService, tasks: readonly ListedTask[]) {
  const { Spec, PreviousSpec, ServiceStatus: status, UpdateStatus: update } = listed;
  return {
    id: listed.ID,
    name,
    version: listed.Version.Index,
    /** The image as named in the stack file, without the digest from the registry. */
    image: imageOf(Spec),
    /** The image that Swarm rolls back to, if there is one. */
    previousImage: PreviousSpec ? imageOf(PreviousSpec) : null,
    /** The settings that need new tasks if they change; only for comparing. */
    definition: definitionOf(Spec),
    /** The whole specification, to send back to Swarm. */
    spec: Spec as unknown,
    desiredTasks: status?.DesiredTasks ?? 0,
    runningTasks: status?.RunningTasks ?? 0,
    /** Also past ones that Swarm still knows, oldest first. */
    tasks: tasks.map((task) => readTask(name, task)) as readonly Task[],
    update: update?.State
      ? { state: update.State, startedAt: update.StartedAt ?? "", message: update.Message ?? "" }
      : (null as UpdateStatus | null),
    /** It runs to its end, and Swarm updates it in another way than other services. */
    isJob: "ReplicatedJob" in Spec.Mode || "GlobalJob" in Spec.Mode,
  };
}

function imageOf({ Labels, TaskTemplate }: ServiceSpec): string {
  return Labels?.["com.docker.stack.image"] ?? TaskTemplate.ContainerSpec?.Image ?? "";
}

/** Without the platforms of the image: `docker stack deploy` only includes them if it has asked the registry. */
function definitionOf({ TaskTemplate, EndpointSpec }: ServiceSpec): string {
  const placement = { ...TaskTemplate.Placement, Platforms: undefined };
  return JSON.stringify([{ ...TaskTemplate, Placement: placement }, EndpointSpec]);
}

interface ListedTask {
  readonly ID: string;
  readonly CreatedAt: string;
  readonly ServiceID: string;
  readonly Slot?: number;
  readonly NodeID?: string;
  readonly DesiredState: string;
  readonly Spec?: { readonly ContainerSpec?: { readonly Env?: readonly string[] | null } };
  readonly Status: {
    readonly State: string;
    readonly Err?: string;
    readonly ContainerStatus?: { readonly ContainerID?: string };
  };
}

function readTask(service: string, { ID, Slot, NodeID = "", DesiredState, Spec, Status }: ListedTask) {
  return {
    id: ID,
    /** Short, for a person: `app.2.x7f2a`, with its number within the service or its node. */
    name: `${service}.${Slot ?? NodeID.slice(0, 5)}.${ID.slice(0, 5)}`,
    state: Status.State,
    isWanted: DesiredState === "running" || DesiredState === "ready",
    /** Why it failed, or why it cannot start; empty if there is no error. */
    error: Status.Err ?? "",
    containerId: Status.ContainerStatus?.ContainerID || null,
    /** Of its container, as `NAME=value`. The container itself can only be inspected on its own node. */
    environment: Spec?.ContainerSpec?.Env ?? [],
  };
}

/** Whether a task ended without a request. One that was stopped as unhealthy and then exited with 0 is `complete`. */
export function hasFailed({ state }: Task): boolean {
  return ["failed", "rejected", "orphaned", "complete"].includes(state);
}

/** Whether Swarm is updating the service or rolling it back. */
export function isUnderWay(update: UpdateStatus | null | undefined): boolean {
  return update?.state === "updating" || update?.state === "rollback_started";
}

/** A service since the stack was deployed. */
export interface Observation {
  /** As it was just before the deploy; null if it did not exist. */
  readonly before: SwarmService | null;
  readonly now: SwarmService;
  /** The time of `now`, since the deploy. */
  readonly atMs: number;
  /** When as many new tasks ran as are wanted. Swarm reports a task as running when its health check passes. */
  readonly healthyAfterMs: number | null;
  /** How long none of its tasks ran. */
  readonly downtimeMs: number;
  /** Since when all its tasks run; null while they do not. */
  readonly steadySinceMs: number | null;
}

/** Adds to `last` how the service is `now`. */
export function observe(
  { before, now, atMs }: Pick<Observation, "before" | "now" | "atMs">,
  last: Observation | undefined,
): Observation {
  const { desiredTasks, runningTasks } = now;
  const freshRunning = freshTasks({ before, now }).filter(({ state }) => state === "running").length;
  const hasAllFresh = desiredTasks > 0 && freshRunning >= desiredTasks;
  const awayMs = runningTasks === 0 && desiredTasks > 0 ? atMs - (last?.atMs ?? 0) : 0;
  return {
    ...{ before, now, atMs },
    healthyAfterMs: last?.healthyAfterMs ?? (hasAllFresh ? atMs : null),
    downtimeMs: (last?.downtimeMs ?? 0) + awayMs,
    steadySinceMs: runningTasks < desiredTasks ? null : (last?.steadySinceMs ?? atMs),
  };
}

/** The tasks that did not exist before the deploy. */
export function freshTasks({ before, now }: Pick<Observation, "before" | "now">): readonly Task[] {
  const known = new Set(before?.tasks.map(({ id }) => id));
  return now.tasks.filter(({ id }) => !known.has(id));
}

/** What a service has come to since the stack was deployed. */
export type Judgement = "pending" | "unchanged" | "started" | "updated" | { readonly failure: string };

/** Without a health check, a task counts as good when it has run this long. */
const steadyEnoughMs = 3_000;
/** By then Swarm has begun an update. A change that needs no new tasks never gets one. */
const updateBeginsMs = 10_000;

/** Judges a service by its state, because `docker stack deploy` exits with 0 even after a roll back. */
export function judgeService(service: StackService, seen: Observation): Judgement {
  const judgement = judgeNow(service, seen);
  const { timeoutMs } = service.update;
  // A roll back by Swarm gets as much time again: the reason of the failure is known when it ends.
  const allowedMs = seen.now.update?.state === "rollback_started" ? 2 * timeoutMs : timeoutMs;
  if (judgement !== "pending" || seen.atMs <= allowedMs) return judgement;
  return { failure: `The update of ${service.name} was not done after ${formatDuration(seen.atMs)}.` };
}

function judgeNow(service: StackService, seen: Observation): Judgement {
  const { before, now, atMs } = seen;
  if (now.isJob) return "unchanged";
  if (before === null) return judgeFirstStart(service, seen);
  // Compared with the status before the deploy and not with a clock: the manager's may differ from ours.
  if (now.update && now.update.startedAt !== before.update?.startedAt)
    return judgeUpdate(service, now.update);
  if (now.definition !== before.definition)
    return atMs >= updateBeginsMs && isSteady(service, seen) ? "unchanged" : "pending";
  if (now.update?.state.endsWith("paused")) return judgeUpdate(service, now.update);
  return hasAllTasks(service, seen) ? "unchanged" : "pending";
}

function judgeUpdate({ name }: StackService, update: UpdateStatus): Judgement {
  if (isUnderWay(update)) return "pending";
  if (update.state === "completed") return "updated";
  const what =
    update.state === "rollback_completed"
      ? `The new version of ${name} failed, and Swarm went back to the old one`
      : `Swarm paused the update of ${name}`;
  return { failure: `${what} (${update.message}).` };
}

/** A new service has no update, and Swarm restarts its tasks forever without reporting a failure. */
function judgeFirstStart(service: StackService, seen: Observation): Judgement {
  const isFailure = (task: Task) => hasFailed(task) && !(service.mayEnd && task.state === "complete");
  if (freshTasks(seen).some(isFailure)) return { failure: `${service.name} could not be started.` };
  return isSteady(service, seen) ? "started" : "pending";
}

function isSteady(service: StackService, seen: Observation): boolean {
  const steadyMs = seen.steadySinceMs === null ? 0 : seen.atMs - seen.steadySinceMs;
  const needsNoTime = service.hasHealthCheck || service.mayEnd;
  return hasAllTasks(service, seen) && (needsNoTime || steadyMs >= steadyEnoughMs);
}

/** A service whose tasks may end needs no running ones after they have run once. */
function hasAllTasks({ mayEnd }: StackService, seen: Observation): boolean {
  const { before, now } = seen;
  const isOver = mayEnd && now.definition === before?.definition;
  const ended = mayEnd ? freshTasks(seen).filter(({ state }) => state === "complete").length : 0;
  return isOver || now.runningTasks + ended >= now.desiredTasks;
}
