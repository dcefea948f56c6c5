import { removeContainer } from "./container.ts";
import { type Engine, nullIfMissing } from "./engine.ts";
import { inspectImage, tagImage } from "./image.ts";

/** What the engine needs to make a container again that is gone by then (recreate-container.ts). */
export interface Blueprint {
  readonly id: string;
  readonly name: string;
  /** The id of its image, and the name that it was started by. */
  readonly image: string;
  readonly imageName: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly hostConfig: Readonly<Record<string, unknown>> & { readonly NetworkMode: string };
  readonly networks: Readonly<Record<string, Endpoint>>;
}

/** How a container was to be in a network. */
export interface Endpoint {
  readonly IPAMConfig?: Readonly<Record<string, unknown>> | null | undefined;
  readonly Links?: readonly string[] | null | undefined;
  readonly Aliases?: readonly string[] | null | undefined;
  readonly DriverOpts?: Readonly<Record<string, string>> | null | undefined;
  readonly GwPriority?: number | undefined;
}

/** Reads how a container was made, with the volumes it has; null where it is gone. */
export async function readBlueprint(engine: Engine, id: string): Promise<Blueprint | null> {
  const answer = await nullIfMissing(engine.get(`/containers/${id}/json`));
  return answer && blueprintOf(JSON.parse(answer.toString()));
}

interface Inspected {
  readonly Id: string;
  readonly Name: string;
  readonly Image: string;
  readonly Config: Readonly<Record<string, unknown>> & {
    readonly Image: string;
    readonly Hostname: string;
    readonly Entrypoint: readonly string[] | null;
  };
  readonly HostConfig: Readonly<Record<string, unknown>> & {
    readonly NetworkMode: string;
    readonly Binds: readonly string[] | null;
    readonly Mounts?: readonly MountRequest[] | null;
  };
  readonly Mounts: readonly MountPoint[];
  readonly NetworkSettings: { readonly Networks: Readonly<Record<string, Endpoint>> | null };
}

interface MountRequest {
  readonly Type: string;
  readonly Source?: string;
  readonly Target: string;
  readonly ReadOnly?: boolean;
}

interface MountPoint {
  readonly Type: string;
  readonly Name?: string;
  readonly Destination: string;
  readonly RW: boolean;
}

function blueprintOf(container: Inspected): Blueprint {
  const { Id, Name, Image, Config, HostConfig } = container;
  return {
    id: Id,
    name: Name.replace(/^\//, ""),
    image: Image,
    imageName: Config.Image,
    config: {
      ...Config,
      ...hostNameOf(container),
      // With null, the engine would take the image's entry point, which this container was made without.
      Entrypoint: Config.Entrypoint?.length ? Config.Entrypoint : [""],
    },
    hostConfig: { ...HostConfig, Mounts: mountsOf(container) },
    networks: endpointsOf(container),
  };
}

/** A host name that the engine made up must not outlive its container, nor one that is that of another's network. */
function hostNameOf({ Id, Config, HostConfig }: Inspected): Readonly<Record<string, unknown>> {
  if (HostConfig.NetworkMode.startsWith("container:"))
    return { Hostname: "", Domainname: "", ExposedPorts: undefined };
  return Id.startsWith(Config.Hostname) ? { Hostname: "" } : {};
}

/** As it was made with; anonymous volumes by the names they were given, or the new container would get empty ones. */
function mountsOf({ HostConfig, Mounts }: Inspected): readonly MountRequest[] {
  const volumes = Mounts.filter(({ Type, Name }) => Type === "volume" && Name !== undefined);
  const requested = (HostConfig.Mounts ?? []).map((mount) => {
    const volume = volumes.find(({ Destination }) => Destination === mount.Target);
    return volume?.Name === undefined ? mount : { ...mount, Source: volume.Name };
  });
  const told = new Set([
    ...requested.map(({ Target }) => Target),
    ...(HostConfig.Binds ?? []).map((bind) => bind.split(":")[1]),
  ]);
  const untold = volumes.filter(({ Destination }) => !told.has(Destination));
  return [
    ...requested,
    ...untold.map(({ Name = "", Destination, RW }) => ({
      Type: "volume",
      Source: Name,
      Target: Destination,
      ReadOnly: !RW,
    })),
  ];
}

/** What was asked for, not what came of it: an address or a MAC that the engine chose may be another's by now. */
function endpointsOf({ Id, NetworkSettings }: Inspected): Readonly<Record<string, Endpoint>> {
  const endpoints = Object.entries(NetworkSettings.Networks ?? {}).map(
    ([network, { IPAMConfig, Links, Aliases, DriverOpts, GwPriority }]) => {
      // Older engines list the container's own id.
      const aliases = Aliases?.filter((alias) => !Id.startsWith(alias)) ?? null;
      return [network, { IPAMConfig, Links, Aliases: aliases, DriverOpts, GwPriority }] as const;
    },
  );
  return Object.fromEntries(endpoints);
}

/**
 * Makes a container by `blueprint` and does not start it. It has a name of its own, so that one that has taken the
 * name of the old one can stay until this one is there.
 *
 * @returns its id
 * @throws ProblemError `docker_refused` where the engine cannot make it; nothing is left then
 */
export async function recreateContainer(engine: Engine, blueprint: Blueprint): Promise<string> {
  const { name, hostConfig, networks } = blueprint;
  const [first, ...others] = inOrder(networks, hostConfig.NetworkMode);
  const answer = await engine.post(`/containers/create?name=${name}_${blueprint.id.slice(0, 12)}`, {
    ...blueprint.config,
    Image: await imageReference(engine, blueprint),
    HostConfig: hostConfig,
    NetworkingConfig: first && { EndpointsConfig: Object.fromEntries([first]) },
  });
  const { Id: id }: { readonly Id: string } = JSON.parse(answer.toString());
  try {
    // Engines before 25 take one network when a container is made.
    for (const [network, endpoint] of others) {
      const path = `/networks/${encodeURIComponent(network)}/connect`;
      await engine.post(path, { Container: id, EndpointConfig: endpoint });
    }
  } catch (error) {
    await removeContainer(engine, id).catch(() => {});
    throw error;
  }
  return id;
}

/** Gives a container that `recreateContainer` made the name of the old one, and starts it. */
export async function startRecreated(engine: Engine, id: string, { name }: Blueprint): Promise<void> {
  await engine.post(`/containers/${id}/rename?name=${name}`);
  await engine.post(`/containers/${id}/start`);
}

function inOrder(
  networks: Readonly<Record<string, Endpoint>>,
  first: string,
): readonly (readonly [string, Endpoint])[] {
  const isFirst = ([name]: readonly [string, Endpoint]) => name === first;
  return Object.entries(networks).sort((a, b) => Number(isFirst(b)) - Number(isFirst(a)));
}

/** By its old name, which may have been given to the version that failed; by its id where that cannot be. */
async function imageReference(engine: Engine, { image, imageName }: Blueprint): Promise<string> {
  if ((await inspectImage(engine, imageName))?.id === image) return imageName;
  if (imageName.includes("@") || imageName.startsWith("sha256:")) return image;
  await tagImage(engine, image, imageName);
  return imageName;
}
