import type { Engine } from "../../platform/docker/engine.ts";

/** A service of a stack, as Swarm reports it at one moment. */
export interface SwarmService {
  readonly id: string;
  /** Its name in the stack file. */
  readonly name: string;
  readonly version: number;
  /** The image as named in the stack file, without the digest from the registry. */
  readonly image: string;
  /** The image that Swarm rolls back to, if there is one. */
  readonly previousImage: string | null;
  /** The settings that need new tasks if they change; only for comparing. */
  readonly definition: string;
  /** The whole specification, to send back to Swarm. */
  readonly spec: unknown;
  readonly desiredTasks: number;
  readonly runningTasks: number;
  readonly update: UpdateStatus | null;
  /** It runs to its end, and Swarm updates it in another way than other services. */
  readonly isJob: boolean;
}

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

/** The services of a stack by their names in the stack file. */
export async function listServices(
  engine: Engine,
  stack: string,
): Promise<ReadonlyMap<string, SwarmService>> {
  const listed = await listOfStack<ListedService>(engine, stack, "/services?status=true");
  const services = listed.map((one) => readService(stack, one));
  return new Map(services.map((service) => [service.name, service]));
}

/** Gets a list from the engine at `path`: the entries that belong to `stack` and match `filters`. */
export async function listOfStack<Entry>(
  engine: Engine,
  stack: string,
  path: string,
  filters: Readonly<Record<string, readonly string[]>> = {},
): Promise<readonly Entry[]> {
  const query = JSON.stringify({ label: [`com.docker.stack.namespace=${stack}`], ...filters });
  const answer = await engine.get(
    `${path}${path.includes("?") ? "&" : "?"}filters=${encodeURIComponent(query)}`,
  );
  return JSON.parse(answer.toString());
}

/** Asks Swarm to roll a service back to its previous specification. */
export async function rollBackService(engine: Engine, { id, version, spec }: SwarmService): Promise<void> {
  await engine.post(`/services/${id}/update?version=${version}&rollback=previous`, spec);
}

interface Spec {
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
  readonly Spec: Spec;
  readonly PreviousSpec?: Spec;
  readonly UpdateStatus?: {
    readonly State?: UpdateStatus["state"];
    readonly StartedAt?: string;
    readonly Message?: string;
  };
  readonly ServiceStatus?: { readonly RunningTasks: number; readonly DesiredTasks: number };
}

function readService(stack: string, listed: ListedService): SwarmService {
  const { ID, Version, Spec, PreviousSpec, UpdateStatus: update, ServiceStatus: status } = listed;
  return {
    id: ID,
    name: Spec.Name.slice(stack.length + 1),
    version: Version.Index,
    image: imageOf(Spec),
    previousImage: PreviousSpec ? imageOf(PreviousSpec) : null,
    definition: definitionOf(Spec),
    spec: Spec,
    desiredTasks: status?.DesiredTasks ?? 0,
    runningTasks: status?.RunningTasks ?? 0,
    update: update?.State
      ? { state: update.State, startedAt: update.StartedAt ?? "", message: update.Message ?? "" }
      : null,
    isJob: "ReplicatedJob" in Spec.Mode || "GlobalJob" in Spec.Mode,
  };
}

/** Without the platforms of the image: `docker stack deploy` only includes them if it has asked the registry. */
function definitionOf({ TaskTemplate, EndpointSpec }: Spec): string {
  const placement = { ...TaskTemplate.Placement, Platforms: undefined };
  return JSON.stringify([{ ...TaskTemplate, Placement: placement }, EndpointSpec]);
}

function imageOf({ Labels, TaskTemplate }: Spec): string {
  return Labels?.["com.docker.stack.image"] ?? TaskTemplate.ContainerSpec?.Image ?? "";
}
