import type { Engine } from "../../platform/docker/engine.ts";
import { findOwnContainer } from "../../platform/docker/own-container.ts";

/** The container this process is in, as one of a compose project's service. */
export interface OwnService {
  readonly id: string;
  readonly project: string;
  readonly service: string;
}

/** Finds it; null on a host, and where compose did not make the container. */
export async function findOwnService(engine: Engine): Promise<OwnService | null> {
  const own = await findOwnContainer(engine);
  const project = own?.labels["com.docker.compose.project"];
  const service = own?.labels["com.docker.compose.service"];
  if (!own || !project || !service) return null;
  return { id: own.id, project, service };
}
