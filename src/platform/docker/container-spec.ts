import { removeContainer } from "./container.ts";
import { type Engine, getJson, nullIfMissing, readJson } from "./engine.ts";
import { inspectImage, tagImage } from "./image.ts";

/** What the engine needs to recreate a container that is gone. */
export interface ContainerSpec {
  readonly id: string;
  readonly name: string;
  /** The id of its image, and the name that it was started with. */
  readonly image: string;
  readonly imageName: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly hostConfig: Readonly<Record<string, unknown>> & { readonly NetworkMode: string };
  readonly networks: Readonly<Record<string, Endpoint>>;
}

/** How a container was asked to join a network. */
type Endpoint = Readonly<Record<string, unknown>> & { readonly Aliases?: readonly string[] | null };

/** Reads how a container was made, and which volumes it has; null if it is gone. */
export async function readContainerSpec(engine: Engine, id: string): Promise<ContainerSpec | null> {
  const found = await nullIfMissing(getJson<Inspected>(engine, `/containers/${id}/json`));
  return found && specOf(found);
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

function specOf(container: Inspected): ContainerSpec {
  const { Id, Name, Image, Config, HostConfig } = container;
  return {
    id: Id,
    name: Name.replace(/^\//, ""),
    image: Image,
    imageName: Config.Image,
    config: {
      ...Config,
      ...hostNameOf(container),
      // With null, the engine would take the image's entry point, which this container did without.
      Entrypoint: Config.Entrypoint?.length ? Config.Entrypoint : [""],
    },
    hostConfig: { ...HostConfig, Mounts: mountsOf(container) },
    networks: endpointsOf(container),
  };
}

/** Host names are dropped if the engine made them up, or if they belong to another container's network. */
function hostNameOf({ Id, Config, HostConfig }: Inspected): Readonly<Record<string, unknown>> {
  if (HostConfig.NetworkMode.startsWith("container:"))
    return { Hostname: "", Domainname: "", ExposedPorts: undefined };
  return Id.startsWith(Config.Hostname) ? { Hostname: "" } : {};
}

/**
 * The mounts as requested. Anonymous volumes keep their generated names: without them the new container would get
 * empty ones.
 */
function mountsOf({ HostConfig, Mounts }: Inspected): readonly MountRequest[] {
  const volumes = Mounts.filter(({ Type, Name }) => Type === "volume" && Name !== undefined);
  const requested = (HostConfig.Mounts ?? []).map((mount) => {
    const volume = volumes.find(({ Destination }) => Destination === mount.Target);
    return volume?.Name === undefined ? mount : { ...mount, Source: volume.Name };
  });
  const named = new Set([
    ...requested.map(({ Target }) => Target),
    ...(HostConfig.Binds ?? []).map((bind) => bind.split(":")[1]),
  ]);
  const unnamed = volumes.filter(({ Destination }) => !named.has(Destination));
  const kept = unnamed.map(({ Name = "", Destination, RW }) => {
    return { Type: "volume", Source: Name, Target: Destination, ReadOnly: !RW };
  });
  return [...requested, ...kept];
}

/** What was asked for, not what the engine chose: another container may have that address or MAC by now. */
function endpointsOf({ Id, NetworkSettings }: Inspected): Readonly<Record<string, Endpoint>> {
  const endpoints = Object.entries(NetworkSettings.Networks ?? {}).map(([network, endpoint]) => {
    const { IPAMConfig, Links, Aliases, DriverOpts, GwPriority } = endpoint;
    // Older engines list the container's own id.
    const aliases = Aliases?.filter((alias) => !Id.startsWith(alias)) ?? null;
    return [network, { IPAMConfig, Links, Aliases: aliases, DriverOpts, GwPriority }];
  });
  return Object.fromEntries(endpoints);
}

/**
 * Creates a container by `spec` without starting it. Its name is temporary, so that a container which has taken the
 * old name can stay until this one is there.
 *
 * @returns its id
 * @throws ProblemError `docker_refused` if the engine cannot create it; nothing is left then
 */
export async function recreateContainer(engine: Engine, spec: ContainerSpec): Promise<string> {
  const { name, hostConfig } = spec;
  const networks = Object.entries(spec.networks);
  const first = networks.find(([network]) => network === hostConfig.NetworkMode) ?? networks[0];
  const others = networks.filter((network) => network !== first);
  const answer = await engine.post(`/containers/create?name=${name}_${spec.id.slice(0, 12)}`, {
    ...spec.config,
    Image: await imageReference(engine, spec),
    HostConfig: hostConfig,
    NetworkingConfig: first && { EndpointsConfig: Object.fromEntries([first]) },
  });
  const { Id: id } = readJson<{ readonly Id: string }>(answer);
  try {
    // Engines before 25 accept only one network when a container is created.
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
export async function startRecreated(engine: Engine, id: string, { name }: ContainerSpec): Promise<void> {
  await engine.post(`/containers/${id}/rename?name=${name}`);
  await engine.post(`/containers/${id}/start`);
}

/**
 * The old name of the image, which may stand for the failed version by now; the id if that name cannot be restored.
 */
async function imageReference(engine: Engine, { image, imageName }: ContainerSpec): Promise<string> {
  if ((await inspectImage(engine, imageName))?.id === image) return imageName;
  if (imageName.includes("@") || imageName.startsWith("sha256:")) return image;
  await tagImage(engine, image, imageName);
  return imageName;
}
