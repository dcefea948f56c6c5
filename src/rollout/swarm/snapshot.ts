import type { Engine } from "../../platform/docker/engine.ts";
import { listServices, type SwarmService } from "./swarm-service.ts";
import { listTasks, type Task } from "./task.ts";

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

/** The tasks of a service, without those that `earlier` knows. */
export function tasksOf(
  snapshot: Snapshot,
  service: string,
  earlier: Snapshot | null = null,
): readonly Task[] {
  const id = snapshot.services.get(service)?.id;
  const known = new Set(earlier?.tasks.map((task) => task.id));
  return snapshot.tasks.filter((task) => task.serviceId === id && !known.has(task.id));
}
