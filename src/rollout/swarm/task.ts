import type { Engine } from "../../platform/docker/engine.ts";

/** A task of a stack: one container that Swarm wants, has or had. */
export interface Task {
  readonly id: string;
  readonly serviceId: string;
  /** Its number within the service, or the node that it is for. */
  readonly place: string;
  readonly state: TaskState;
  readonly isWanted: boolean;
  /** Why it failed, or why it cannot start; empty where there is nothing to say. */
  readonly error: string;
  readonly containerId: string | null;
  /** Of its container, as `NAME=value`; the container itself can be asked on its own node only. */
  readonly environment: readonly string[];
}

export type TaskState =
  | "new"
  | "allocated"
  | "pending"
  | "assigned"
  | "accepted"
  | "preparing"
  | "ready"
  | "starting"
  | "running"
  | "complete"
  | "shutdown"
  | "failed"
  | "rejected"
  | "remove"
  | "orphaned";

/** The tasks of a stack, those of the past that Swarm still knows among them, oldest first. */
export async function listTasks(engine: Engine, stack: string): Promise<readonly Task[]> {
  const filters = encodeURIComponent(JSON.stringify({ label: [`com.docker.stack.namespace=${stack}`] }));
  const listed: readonly Listed[] = JSON.parse((await engine.get(`/tasks?filters=${filters}`)).toString());
  return [...listed].sort((a, b) => a.CreatedAt.localeCompare(b.CreatedAt)).map(readTask);
}

/** A short name for a person: `app.2.x7f2a`. */
export function taskName(service: string, { place, id }: Task): string {
  return `${service}.${place}.${id.slice(0, 5)}`;
}

/**
 * It ended without being asked to. One that was stopped because it was unhealthy, and then ended well, is `complete`.
 */
export function hasFailed({ state }: Task): boolean {
  return state === "failed" || state === "rejected" || state === "orphaned" || state === "complete";
}

interface Listed {
  readonly ID: string;
  readonly CreatedAt: string;
  readonly ServiceID: string;
  readonly Slot?: number;
  readonly NodeID?: string;
  readonly DesiredState: string;
  readonly Spec?: { readonly ContainerSpec?: { readonly Env?: readonly string[] | null } };
  readonly Status: {
    readonly State: TaskState;
    readonly Err?: string;
    readonly ContainerStatus?: { readonly ContainerID?: string };
  };
}

function readTask({ ID, ServiceID, Slot, NodeID, DesiredState, Spec, Status }: Listed): Task {
  return {
    id: ID,
    serviceId: ServiceID,
    place: Slot === undefined ? (NodeID ?? "").slice(0, 5) : String(Slot),
    state: Status.State,
    isWanted: DesiredState === "running" || DesiredState === "ready",
    error: Status.Err ?? "",
    containerId: Status.ContainerStatus?.ContainerID || null,
    environment: Spec?.ContainerSpec?.Env ?? [],
  };
}
