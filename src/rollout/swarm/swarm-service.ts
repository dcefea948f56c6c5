import type { Engine } from "../../platform/docker/engine.ts";

/** A service of a stack, as Swarm tells it at one moment. */
export interface SwarmService {
  readonly id: string;
  /** Its name in the stack file. */
  readonly name: string;
  readonly version: number;
  /** The image as the stack named it, without the digest that the registry gave. */
  readonly image: string;
  /** The image that Swarm goes back to, where there is one. */
  readonly previousImage: string | null;
  /** What makes new tasks necessary where it changes; only good for comparing. */
  readonly definition: string;
  /** The whole specification, to send back. */
  readonly spec: unknown;
  readonly desiredTasks: number;
  readonly runningTasks: number;
  readonly update: UpdateStatus | null;
  /** It runs to its end, and is not updated as others are. */
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
  const filters = encodeURIComponent(JSON.stringify({ label: [`com.docker.stack.namespace=${stack}`] }));
  const listed: readonly Listed[] = JSON.parse(
    (await engine.get(`/services?status=true&filters=${filters}`)).toString(),
  );
  const services = listed.map((one) => readService(stack, one));
  return new Map(services.map((service) => [service.name, service]));
}

/** Asks Swarm to bring the service's previous specification back. */
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

interface Listed {
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

function readService(stack: string, listed: Listed): SwarmService {
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

/** Without the platforms of the image: `docker stack deploy` only says them when it has asked the registry anew. */
function definitionOf({ TaskTemplate, EndpointSpec }: Spec): string {
  const placement = { ...TaskTemplate.Placement, Platforms: undefined };
  return JSON.stringify([{ ...TaskTemplate, Placement: placement }, EndpointSpec]);
}

function imageOf({ Labels, TaskTemplate }: Spec): string {
  return Labels?.["com.docker.stack.image"] ?? TaskTemplate.ContainerSpec?.Image ?? "";
}
