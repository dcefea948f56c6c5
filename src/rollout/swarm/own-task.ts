import type { Engine } from "../engine/engine.ts";
import { findOwnContainer } from "../engine/own-container.ts";

/** The task that this process is in: its container, and its service as the stack file names it. */
export interface OwnTask {
  readonly id: string;
  readonly service: string;
}

/** Finds it; null where this process is in no task of `stack`. */
export async function findOwnTask(engine: Engine, stack: string): Promise<OwnTask | null> {
  const own = await findOwnContainer(engine);
  const service = own?.labels["com.docker.swarm.service.name"];
  const isOfStack = own?.labels["com.docker.stack.namespace"] === stack;
  return own && service && isOfStack ? { id: own.id, service: service.slice(stack.length + 1) } : null;
}
