import type { Engine } from "../../platform/docker/engine.ts";
import { listOfStack, listServices, type SwarmService } from "./swarm-service.ts";

/** A task of a stack: one container that Swarm wants, has or had. */
export interface Task {
  readonly id: string;
  readonly serviceId: string;
  /** Its number within the service, or its node. */
  readonly place: string;
  readonly state: TaskState;
  readonly isWanted: boolean;
  /** Why it failed, or why it cannot start; empty if there is no error. */
  readonly error: string;
  readonly containerId: string | null;
  /** Of its container, as `NAME=value`. The container itself can only be inspected on its own node. */
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

/** The tasks of a stack, also past ones that Swarm still knows, oldest first. */
export async function listTasks(engine: Engine, stack: string): Promise<readonly Task[]> {
  const listed = await listOfStack<ListedTask>(engine, stack, "/tasks");
  return [...listed].sort((a, b) => a.CreatedAt.localeCompare(b.CreatedAt)).map(readTask);
}

/** A short name for a person: `app.2.x7f2a`. */
export function taskName(service: string, { place, id }: Task): string {
  return `${service}.${place}.${id.slice(0, 5)}`;
}

/** It ended without a request. A task that was stopped as unhealthy and then exited with 0 is `complete`. */
export function hasFailed({ state }: Task): boolean {
  return state === "failed" || state === "rejected" || state === "orphaned" || state === "complete";
}

/** A stack at one moment. */
export interface Snapshot {
  /** By their names in the stack file. */
  readonly services: ReadonlyMap<string, SwarmService>;
  readonly tasks: readonly Task[];
}

export async function takeSnapshot(engine: Engine, stack: string): Promise<Snapshot> {
  const [services, tasks] = await Promise.all([listServices(engine, stack), listTasks(engine, stack)]);
  return { services, tasks };
}

/** The tasks of a service, without those in `earlier`. */
export function tasksOf(
  snapshot: Snapshot,
  service: string,
  earlier: Snapshot | null = null,
): readonly Task[] {
  const id = snapshot.services.get(service)?.id;
  const known = new Set(earlier?.tasks.map((task) => task.id));
  return snapshot.tasks.filter((task) => task.serviceId === id && !known.has(task.id));
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
    readonly State: TaskState;
    readonly Err?: string;
    readonly ContainerStatus?: { readonly ContainerID?: string };
  };
}

function readTask({ ID, ServiceID, Slot, NodeID, DesiredState, Spec, Status }: ListedTask): Task {
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
