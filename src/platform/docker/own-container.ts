import { readFile, realpath } from "node:fs/promises";
import { type Engine, getJson, nullIfMissing } from "./engine.ts";
import { containerIdIn, hasMounts } from "./mountinfo.ts";

/** The container that this process runs in. */
export interface OwnContainer {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Its mounts: the path on the host, and the path in the container. */
  readonly mounts: readonly OwnMount[];
}

export interface OwnMount {
  readonly source: string;
  readonly destination: string;
}

/**
 * Finds this container by the files that Docker mounts into every container. The host name proves nothing: it can be
 * set, and in the host's network it is the host's own.
 *
 * @returns null outside of a container, and if the container is uncertain (in another container's network, those
 * files belong to that container)
 */
export async function findOwnContainer(engine: Engine): Promise<OwnContainer | null> {
  const mountInfo = await readFile("/proc/self/mountinfo", "utf8");
  const id = containerIdIn(mountInfo);
  if (id === null) return null;
  const container = await inspect(engine, id);
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
function mountPoints({ mounts }: OwnContainer): Promise<readonly string[]> {
  return Promise.all(mounts.map(({ destination }) => realpath(destination).catch(() => destination)));
}

async function inspect(engine: Engine, id: string): Promise<OwnContainer | null> {
  const found = await nullIfMissing(getJson<Inspected>(engine, `/containers/${id}/json`));
  if (found === null) return null;
  const mounts = found.Mounts.map(({ Source, Destination }) => ({
    source: Source,
    destination: Destination,
  }));
  return { id, labels: found.Config.Labels ?? {}, mounts };
}

interface Inspected {
  readonly Config: { readonly Labels: Readonly<Record<string, string>> | null };
  readonly Mounts: readonly { readonly Source: string; readonly Destination: string }[];
}
