import { listContainers } from "../../platform/docker/container.ts";
import type { Engine } from "../../platform/docker/engine.ts";
import { isServing } from "../../platform/docker/health.ts";
import type { OwnService } from "./own-service.ts";

/** The name of a container that serves beside `own`, for the same service; null where there is none (any more). */
export async function findSuccessor(engine: Engine, own: OwnService): Promise<string | null> {
  const containers = await listContainers(engine, own.project, own.service);
  return containers.find((container) => container.id !== own.id && isServing(container))?.name ?? null;
}
