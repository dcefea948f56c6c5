import { type Engine, filteredBy, getJson } from "../../platform/docker/engine.ts";
import { findOwnContainer } from "../../platform/docker/own-container.ts";

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
  const { Spec, PreviousSpec, ServiceStatus: status } = listed;
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
    update: updateOf(listed),
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

function updateOf({ UpdateStatus: update }: ListedService): UpdateStatus | null {
  if (!update?.State) return null;
  return { state: update.State, startedAt: update.StartedAt ?? "", message: update.Message ?? "" };
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

/** Asks Swarm to roll a service back to its previous specification. */
export async function rollBackService(engine: Engine, { id, version, spec }: SwarmService): Promise<void> {
  await engine.post(`/services/${id}/update?version=${version}&rollback=previous`, spec);
}

/** The stack of this process's task, and its service in the stack file. */
interface OwnTask {
  readonly stack: string;
  readonly service: string;
}

/** Finds it; null if this process is in no task of a stack. */
export async function findOwnTask(engine: Engine): Promise<OwnTask | null> {
  const own = await findOwnContainer(engine);
  const stack = own?.labels["com.docker.stack.namespace"];
  const service = own?.labels["com.docker.swarm.service.name"];
  return own && stack && service ? { stack, service: service.slice(stack.length + 1) } : null;
}
