import { machineProject, machineServices } from "../config/machine-part.ts";
import { type Engine, filteredBy, getJson } from "../platform/docker/engine.ts";

/** A container of the machine part's Caddy. There are two for a moment while compose recreates it. */
export interface CaddyContainer {
  readonly id: string;
  /** The names of the networks that it is on, or will be on when it starts. */
  readonly networks: readonly string[];
}

/**
 * The containers of the machine part's Caddy that run, or are about to: compose makes the new one before it stops the
 * old one, so there is time to join the new one to networks.
 */
export async function listCaddyContainers(engine: Engine): Promise<readonly CaddyContainer[]> {
  const project = `com.docker.compose.project=${machineProject}`;
  const service = `com.docker.compose.service=${machineServices.caddy}`;
  const status = ["created", "running", "restarting", "paused"];
  const filters = { label: [project, service, "com.docker.compose.oneoff=False"], status };
  const listed = await getJson<readonly ListedContainer[]>(engine, `/containers/json?${filteredBy(filters)}`);
  return listed.map(({ Id, NetworkSettings }) => ({
    id: Id,
    networks: Object.keys(NetworkSettings?.Networks ?? {}),
  }));
}

interface ListedContainer {
  readonly Id: string;
  readonly NetworkSettings?: { readonly Networks?: Readonly<Record<string, unknown>> };
}
