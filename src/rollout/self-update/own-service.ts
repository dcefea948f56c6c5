import { listContainers } from "../../platform/docker/container.ts";
import type { Engine } from "../../platform/docker/engine.ts";
import { isServing } from "../../platform/docker/health.ts";
import { findOwnContainer } from "../../platform/docker/own-container.ts";

/** The container of this process, as part of a compose service. */
export interface OwnService {
  readonly id: string;
  readonly project: string;
  readonly service: string;
}

/** Finds it. Null on a host, and if compose did not create the container. */
export async function findOwnService(engine: Engine): Promise<OwnService | null> {
  const own = await findOwnContainer(engine);
  const project = own?.labels["com.docker.compose.project"];
  const service = own?.labels["com.docker.compose.service"];
  if (!own || !project || !service) return null;
  return { id: own.id, project, service };
}

/** The name of another container of the service that serves beside `own`; null if there is none. */
export async function findSuccessor(engine: Engine, own: OwnService): Promise<string | null> {
  const containers = await listContainers(engine, own.project, own.service);
  return containers.find((container) => container.id !== own.id && isServing(container))?.name ?? null;
}
