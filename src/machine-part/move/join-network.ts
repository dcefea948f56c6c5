import { machineProject, machineServices, projectNetwork, serviceAlias } from "../../config/machine-part.ts";
import { type Container, listContainers } from "../../platform/docker/container.ts";
import { type Engine, EngineRefusal } from "../../platform/docker/engine.ts";

/**
 * Joins containers of a project's service to the project's network, by the name that Caddy knows them by. They go on
 * running.
 */
export async function joinProjectNetwork(
  engine: Engine,
  { project, service }: { readonly project: string; readonly service: string },
  containers: readonly Container[],
): Promise<void> {
  for (const { id } of containers) await connect(engine, project, id, [serviceAlias(service, project)]);
}

/** Joins Caddy to the network, if its container is there; it need not run. */
export async function joinCaddy(engine: Engine, project: string): Promise<void> {
  const containers = await listContainers(engine, machineProject, machineServices.caddy);
  for (const { id } of containers) await connect(engine, project, id, []);
}

async function connect(
  engine: Engine,
  project: string,
  id: string,
  aliases: readonly string[],
): Promise<void> {
  const body = { Container: id, EndpointConfig: { Aliases: aliases } };
  try {
    await engine.post(`/networks/${projectNetwork(project)}/connect`, body);
  } catch (error) {
    const isJoined =
      error instanceof EngineRefusal && /already (?:exists|attached)/.test(error.problem.detail);
    if (!isJoined) throw error;
  }
}
