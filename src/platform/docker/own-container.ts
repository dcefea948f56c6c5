import { readFile, realpath } from "node:fs/promises";
import { type Engine, nullIfMissing } from "./engine.ts";
import { containerIdIn, hasMounts } from "./mountinfo.ts";

/** The container that this process runs in. */
export interface OwnContainer {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  /** What is mounted in it: the path on the host, and the path in here. */
  readonly mounts: readonly OwnMount[];
}

export interface OwnMount {
  readonly source: string;
  readonly destination: string;
}

/**
 * Finds it by the files that Docker mounts into every container. The host name is no proof: it can be set, and it is the
 * host's own in the host's network.
 *
 * @returns null outside of a container, and if the container is uncertain (in another container's network, those files
 * are that container's)
 */
export async function findOwnContainer(engine: Engine): Promise<OwnContainer | null> {
  const mountInfo = await readFile("/proc/self/mountinfo", "utf8");
  const id = containerIdIn(mountInfo);
  if (id === null) return null;
  const container = await inspect(engine, id);
  return container !== null && hasMounts(mountInfo, await mountPoints(container)) ? container : null;
}

/** As the kernel has them: `/var/run/docker.sock` is mounted at `/run/docker.sock`. */
function mountPoints({ mounts }: OwnContainer): Promise<readonly string[]> {
  return Promise.all(mounts.map(({ destination }) => realpath(destination).catch(() => destination)));
}

async function inspect(engine: Engine, id: string): Promise<OwnContainer | null> {
  const answer = await nullIfMissing(engine.get(`/containers/${id}/json`));
  if (answer === null) return null;
  const { Config, Mounts }: Inspected = JSON.parse(answer.toString());
  const mounts = Mounts.map(({ Source, Destination }) => ({ source: Source, destination: Destination }));
  return { id, labels: Config.Labels ?? {}, mounts };
}

interface Inspected {
  readonly Config: { readonly Labels: Readonly<Record<string, string>> | null };
  readonly Mounts: readonly { readonly Source: string; readonly Destination: string }[];
}
