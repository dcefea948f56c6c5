import { readFile, realpath } from "node:fs/promises";
import { type Container, inspectContainer } from "./container.ts";
import type { Engine } from "./engine.ts";
import { containerIdIn, hasMounts } from "./mountinfo.ts";

/**
 * Finds this container by the files that Docker mounts into every container. The host name proves nothing: it can be
 * set, and in the host's network it is the host's own.
 *
 * @returns null outside of a container, and if the container is uncertain (in another container's network, those
 * files belong to that container)
 */
export async function findOwnContainer(engine: Engine): Promise<Container | null> {
  const mountInfo = await readFile("/proc/self/mountinfo", "utf8");
  const id = containerIdIn(mountInfo);
  if (id === null) return null;
  const container = await inspectContainer(engine, id);
  return container !== null && hasMounts(mountInfo, await mountPoints(container)) ? container : null;
}

/** The container of this process, as part of a compose service. */
export interface OwnService {
  readonly id: string;
  readonly project: string;
  readonly service: string;
}

/** Null on a host, and if compose did not create this container. */
export async function findOwnService(engine: Engine): Promise<OwnService | null> {
  const own = await findOwnContainer(engine);
  const project = own?.labels["com.docker.compose.project"];
  const service = own?.labels["com.docker.compose.service"];
  return own && project && service ? { id: own.id, project, service } : null;
}

/** As the kernel has them: `/var/run/docker.sock` is mounted at `/run/docker.sock`. */
function mountPoints({ mounts }: Container): Promise<readonly string[]> {
  return Promise.all(mounts.map(({ target }) => realpath(target).catch(() => target)));
}
