import type { Engine } from "../../platform/docker/engine.ts";
import { findOwnContainer } from "../../platform/docker/own-container.ts";
import type { RolloutContext } from "../context.ts";
import { listServices, type UpdateStatus } from "./swarm-service.ts";
import { listTasks } from "./task.ts";

/** The task of this process. */
export interface OwnTask {
  /** Of its container. */
  readonly id: string;
  readonly stack: string;
  /** Its name in the stack file. */
  readonly service: string;
}

/** Finds it; null if this process is in no task of a stack. */
export async function findOwnTask(engine: Engine): Promise<OwnTask | null> {
  const own = await findOwnContainer(engine);
  const stack = own?.labels["com.docker.stack.namespace"];
  const service = own?.labels["com.docker.swarm.service.name"];
  return own && stack && service ? { id: own.id, stack, service: service.slice(stack.length + 1) } : null;
}

/** The status of the last update of this process's service; null if there was none. */
export async function findOwnUpdate(engine: Engine): Promise<UpdateStatus | null> {
  const own = await findOwnTask(engine);
  if (own === null) return null;
  return (await listServices(engine, own.stack)).get(own.service)?.update ?? null;
}

/** Whether Swarm has asked the task of this process to stop. */
export async function isBeingStopped({
  engine,
  project,
  own,
}: Pick<RolloutContext, "engine" | "project" | "own">): Promise<boolean> {
  if (own === null) return false;
  const tasks = await listTasks(engine, project.name);
  return tasks.some(({ containerId, isWanted }) => containerId === own.id && !isWanted);
}
