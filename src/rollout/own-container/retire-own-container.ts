import { removeContainer } from "../../platform/docker/container.ts";
import type { Engine } from "../../platform/docker/engine.ts";
import { findOwnContainer } from "../../platform/docker/own-container.ts";

/**
 * The last act of an instance that a roll-out has replaced, when its deployment is recorded: it removes the container
 * that it runs in, and so itself. Does not return where that works.
 */
export async function retireOwnContainer(engine: Engine): Promise<void> {
  const own = await findOwnContainer(engine);
  if (own !== null) await removeContainer(engine, own.id);
}
