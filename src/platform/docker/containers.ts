import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import {
  containerIdIn,
  type Engine,
  EngineRefusal,
  filteredBy,
  getJson,
  nullIfMissing,
  readJson,
} from "./engine.ts";

/** Docker's default. */
const dockersGraceS = 10;

/** A container, as the engine describes it at one moment. */
export type Container = Readonly<ReturnType<typeof readContainer>>;

/**
 * The containers of a compose project, running or not, oldest first. One-off containers (`compose run`) are left out.
 */
export async function listContainers(
  engine: Engine,
  project: string,
  service?: string,
): Promise<readonly Container[]> {
  const label = [`com.docker.compose.project=${project}`, "com.docker.compose.oneoff=False"];
  if (service !== undefined) label.push(`com.docker.compose.service=${service}`);
  const path = `/containers/json?all=1&${filteredBy({ label })}`;
  const listed = await getJson<readonly { readonly Id: string }[]>(engine, path);
  const containers = await Promise.all(listed.map(({ Id }) => inspectContainer(engine, Id)));
  return containers.filter((container) => container !== null).sort((a, b) => a.number - b.number);
}

/** One container as it is now, or null if it is gone. */
export async function inspectContainer(engine: Engine, id: string): Promise<Container | null> {
  const found = await inspect(engine, id);
  return found && readContainer(found);
}

function inspect(engine: Engine, id: string): Promise<Inspected | null> {
  return nullIfMissing(getJson<Inspected>(engine, `/containers/${id}/json`));
}

/**
 * Asks a container to stop, and kills it after its own stop grace period or after `longestS` seconds, whichever is
 * shorter. A container that has stopped or is gone counts as stopped.
 */
export async function stopContainer(
  engine: Engine,
  { id, stopGraceS }: Container,
  longestS: number,
): Promise<void> {
  const graceS = Math.min(stopGraceS, longestS);
  await nullIfMissing(engine.post(`/containers/${id}/stop?t=${graceS}`, undefined, graceS * 1_000), gone);
}

/** Removes a container and keeps its volumes. A container that is gone or being removed counts as removed. */
export async function removeContainer(engine: Engine, id: string): Promise<void> {
  await nullIfMissing(engine.delete(`/containers/${id}?force=1`), gone);
}

/** The engine's answers about a container that is not there any more, or is being removed. */
const gone = [404, 409];

type Members = Readonly<Record<string, unknown>>;

interface Inspected {
  readonly Id: string;
  readonly Name: string;
  readonly Image: string;
  readonly RestartCount: number;
  readonly Mounts?: readonly {
    readonly Type: string;
    readonly Name?: string;
    readonly Source?: string;
    readonly Destination: string;
    readonly RW: boolean;
  }[];
  readonly Config: Members & {
    readonly Image: string;
    readonly Hostname: string;
    readonly Entrypoint: readonly string[] | null;
    readonly Labels: Readonly<Record<string, string>> | null;
    readonly StopTimeout?: number | null;
    readonly Env?: readonly string[] | null;
    readonly Shell?: readonly string[] | null;
    readonly Healthcheck?: Healthcheck | null;
  };
  readonly HostConfig: Members & {
    readonly NetworkMode: string;
    readonly Binds: readonly string[] | null;
    readonly Mounts?: readonly { readonly Target: string }[] | null;
  };
  readonly NetworkSettings: { readonly Networks: Readonly<Record<string, Members>> | null };
  readonly State: {
    readonly Status: "created" | "running" | "paused" | "restarting" | "removing" | "exited" | "dead";
    readonly ExitCode: number;
    readonly Health?: {
      readonly Status: string;
      readonly Log: readonly { readonly Output: string }[] | null;
    };
  };
}

/** As the compose file or the image has it; times in nanoseconds. */
interface Healthcheck extends Partial<Record<"StartPeriod" | "Interval" | "Timeout" | "Retries", number>> {
  readonly Test?: readonly string[] | null;
}

function readContainer({ NetworkSettings, ...inspected }: Inspected) {
  const { Id, Name, Image, RestartCount, Config, State, Mounts = [] } = inspected;
  const networks = Object.entries(NetworkSettings?.Networks ?? {});
  const labels = Config.Labels ?? {};
  const label = (name: string) => labels[`com.docker.compose.${name}`] ?? "";
  return {
    id: Id,
    name: Name.replace(/^\//, ""),
    labels,
    /** Its compose service, and the number that compose gave it within that. */
    service: label("service"),
    number: Number(label("container-number")),
    /** The id of its image, and the name that it was started with. */
    image: Image,
    imageName: Config.Image,
    configHash: label("config-hash"),
    status: State.Status,
    /** Null if it has no health check. */
    health: healthOf(State.Health?.Status),
    healthCommand: healthCommandOf(Config),
    /** The milliseconds after which Docker may call it unhealthy; 0 without a health check. */
    unhealthyAfterMs: healthCommandOf(Config) === null ? 0 : unhealthyAfterMs(Config.Healthcheck ?? {}),
    healthLog: (State.Health?.Log ?? []).map(({ Output }) => Output.trim()) as readonly string[],
    exitCode: State.ExitCode,
    restartCount: RestartCount,
    /** Seconds between SIGTERM and SIGKILL, from the compose file. */
    stopGraceS: Config.StopTimeout ?? dockersGraceS,
    /** `name` is the volume's, `source` the path on the host, `target` the path in the container. */
    mounts: Mounts.map(({ Type, Name = "", Source = "", Destination }) => {
      return { type: Type, name: Name, source: Source, target: Destination };
    }),
    /** IPv4 addresses by network; "" where the container has none. */
    addresses: new Map(networks.map(([network, { IPAddress }]) => [network, String(IPAddress ?? "")])),
    /** As `NAME=value`, from its image, `environment` and `env_file`. */
    environment: Config.Env ?? [],
  };
}

export type ContainerMount = Container["mounts"][number];

function healthOf(status: string | undefined) {
  return status === "starting" || status === "healthy" || status === "unhealthy" ? status : null;
}

/** Null if it has no health check. */
function healthCommandOf({ Healthcheck, Shell }: Inspected["Config"]): readonly string[] | null {
  const [kind, ...words] = Healthcheck?.Test ?? [];
  if (kind === "CMD" && words.length > 0) return words;
  return kind === "CMD-SHELL" ? [...(Shell ?? ["/bin/sh", "-c"]), ...words] : null;
}

/** 0 means Docker's default. */
function unhealthyAfterMs({ StartPeriod = 0, Interval, Timeout, Retries }: Healthcheck): number {
  return (StartPeriod + (Retries || 3) * ((Interval || 30e9) + (Timeout || 30e9))) / 1e6;
}

/**
 * The name that Docker's DNS resolves to a container for others on its networks: its own, or its short id if that has a label
 * of more than the 63 characters that DNS allows.
 */
export function hostOf({ id, name }: Pick<Container, "id" | "name">): string {
  return name.split(".").some((label) => label.length > 63) ? id.slice(0, 12) : name;
}

/** The names of containers, for a message. */
export function namesOf(containers: readonly Pick<Container, "name">[]): string {
  return containers.map(({ name }) => name).join(", ");
}

/**
 * Stops and removes containers, all at once.
 *
 * @param longestGraceS the most seconds between SIGTERM and SIGKILL, even if a container's own stop grace period is
 * longer
 * @returns those that the engine refused to stop or to remove (a mount that is busy, for example), with its reason
 * @throws ProblemError `docker_unreachable`
 */
export async function discardContainers(
  engine: Engine,
  containers: readonly Container[],
  longestGraceS: number,
) {
  const discard = async (container: Container) => {
    try {
      await stopContainer(engine, container, longestGraceS);
      await removeContainer(engine, container.id);
      return null;
    } catch (error) {
      if (!(error instanceof EngineRefusal)) throw error;
      return { container, reason: error.problem.detail };
    }
  };
  const kept = await Promise.all(containers.map(discard));
  return kept.filter((one) => one !== null);
}

/**
 * Finds this container by the files that Docker mounts into every container. The host name proves nothing: it can be
 * set, and in the host's network it is the host's own.
 *
 * @returns null outside of a container. In the network of another container, those files are that one's, which is refused elsewhere:
 * it does not have the repository
 */
export async function findOwnContainer(engine: Engine): Promise<Container | null> {
  const id = containerIdIn(await readFile("/proc/self/mountinfo", "utf8"));
  return id === null ? null : await inspectContainer(engine, id);
}

/** The container of this process, as part of a compose service. Null on a host, and if compose did not create this container. */
export async function findOwnService(engine: Engine) {
  const own = await findOwnContainer(engine);
  const project = own?.labels["com.docker.compose.project"];
  const service = own?.labels["com.docker.compose.service"];
  return own && project && service ? { id: own.id, project, service } : null;
}

/** What the engine needs to recreate a container that is gone. */
export type ContainerSpec = NonNullable<Awaited<ReturnType<typeof readContainerSpec>>>;

/**
 * Reads how a container was made, and which volumes it has; null if it is gone.
 *
 * @returns `image` is the id of its image, `imageName` the name that it was started with, `request` creates it, without the image
 */
export async function readContainerSpec(engine: Engine, id: string) {
  const found = await inspect(engine, id);
  if (found === null) return null;
  const { Id, Name, Image, Config, HostConfig, Mounts = [], NetworkSettings } = found;
  const bound = HostConfig.Binds?.map((bind) => bind.split(":")[1]);
  const sharesNetwork = HostConfig.NetworkMode.startsWith("container:");
  const request = {
    ...Config,
    // Host names are dropped if the engine made them up, or if they belong to another container's network.
    ...(sharesNetwork && { Hostname: "", Domainname: "", ExposedPorts: undefined }),
    ...(Id.startsWith(Config.Hostname) && { Hostname: "" }),
    // With null, the engine would take the image's entry point, which this container did without.
    Entrypoint: Config.Entrypoint?.length ? Config.Entrypoint : [""],
    // As they are, so that anonymous volumes keep their generated names: else the new container would get empty ones.
    HostConfig: {
      ...HostConfig,
      Mounts: Mounts.filter(({ Destination }) => !bound?.includes(Destination)).map(
        ({ Type, Name, Source, Destination, RW }) => ({
          ...HostConfig.Mounts?.find(({ Target }) => Target === Destination),
          Type,
          Source: Type === "volume" ? Name : Source,
          Target: Destination,
          ReadOnly: !RW,
        }),
      ),
    },
    NetworkingConfig: { EndpointsConfig: endpointsOf(NetworkSettings.Networks ?? {}) },
  };
  return { id: Id, name: Name.replace(/^\//, ""), image: Image, imageName: Config.Image, request };
}

/** What was asked for, not what the engine chose: another container may have that address or MAC by now. */
function endpointsOf(networks: Readonly<Record<string, Members>>): Members {
  const asked = ({ IPAMConfig, Links, Aliases, DriverOpts, GwPriority }: Members) => {
    return { IPAMConfig, Links, Aliases, DriverOpts, GwPriority };
  };
  return Object.fromEntries(Object.entries(networks).map(([network, one]) => [network, asked(one)]));
}

/**
 * Creates a container by `spec` without starting it. Its name is temporary, so that a container which has taken the
 * old name can stay until this one is there.
 *
 * @returns its id
 * @throws ProblemError `docker_refused` if the engine cannot create it; nothing is left then
 */
export async function recreateContainer(engine: Engine, spec: ContainerSpec): Promise<string> {
  const answer = await engine.post(`/containers/create?name=${spec.name}_${spec.id.slice(0, 12)}`, {
    ...spec.request,
    Image: await imageReference(engine, spec),
  });
  return readJson<{ readonly Id: string }>(answer).Id;
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

/** A command in a container, by the names of the engine's API. What is left out is as for the container's own command. */
export interface Exec {
  readonly Cmd: readonly string[];
  readonly User?: string;
  readonly Privileged?: boolean;
  readonly WorkingDir?: string;
  /** `NAME=value`, beside the container's own. */
  readonly Env?: readonly string[];
}

/**
 * Runs a command in a running container to its end.
 *
 * @param patienceMs time that the command may take, on top of the usual time-out of the engine
 * @returns its exit code and what it printed
 * @throws EngineRefusal if the container does not run, or has no such program
 */
export async function execIn(engine: Engine, id: string, exec: Exec, patienceMs: number = 0) {
  const request = { ...exec, AttachStdout: true, AttachStderr: true };
  const { Id } = readJson<{ readonly Id: string }>(await engine.post(`/containers/${id}/exec`, request));
  // It answers until the command ends.
  const raw = await engine.post(`/exec/${Id}/start`, { Detach: false, Tty: false }, patienceMs);
  const { ExitCode } = await getJson<{ readonly ExitCode: number | null }>(engine, `/exec/${Id}/json`);
  return { exitCode: ExitCode, output: plainLog(raw) };
}

/** If a container has no terminal, the engine puts 8 bytes before each piece: the stream, three zeros, the length. */
export function plainLog(raw: Buffer): string {
  const isMultiplexed = raw.length >= headBytes && (raw[0] ?? 9) <= 2 && raw.readUIntBE(1, 3) === 0;
  if (!isMultiplexed) return raw.toString();
  return Buffer.concat(cutFrames(raw).frames.map(({ bytes }) => bytes)).toString();
}

const headBytes = 8;

/** A piece of what a container wrote: to its standard output (1) or its standard error (2). */
export interface Frame {
  readonly stream: number;
  readonly bytes: Buffer;
}

/** Cuts a multiplexed stream of the engine. `rest` is the beginning of a frame that is not whole yet. */
export function cutFrames(raw: Buffer): { readonly frames: readonly Frame[]; readonly rest: Buffer } {
  const frames: Frame[] = [];
  let at = 0;
  while (at + headBytes <= raw.length) {
    const end = at + headBytes + raw.readUInt32BE(at + 4);
    if (end > raw.length) break;
    frames.push({ stream: raw.readUInt8(at), bytes: raw.subarray(at + headBytes, end) });
    at = end;
  }
  return { frames, rest: raw.subarray(at) };
}

export type Image = NonNullable<Awaited<ReturnType<typeof inspectImage>>>;

/**
 * The image that `reference` (a name, a tag or an id) stands for, or null if it is not on this machine. A registry knows it by its
 * digests: `ghcr.io/team/app@sha256:…`.
 */
export async function inspectImage(engine: Engine, reference: string) {
  const path = `/images/${encodeURIComponent(reference)}/json`;
  const found = await nullIfMissing(getJson<InspectedImage>(engine, path));
  if (found === null) return null;
  // Containerd's store lists digests, too.
  const tags: readonly string[] = (found.RepoTags ?? []).filter((tag) => !tag.includes("@"));
  return { id: found.Id, tags, digests: found.RepoDigests ?? [] };
}

/** The directories with the engine's images. In a container they are not visible, but its own root is on the same disk. */
export async function imageDirectories(engine: Engine): Promise<readonly string[]> {
  const info = await getJson<{ readonly DockerRootDir: string; readonly DriverStatus?: unknown }>(
    engine,
    "/info",
  );
  const isContainerds = JSON.stringify(info.DriverStatus)?.includes("io.containerd.snapshotter.v1");
  const containerds = isContainerds ? ["/var/lib/containerd"] : [];
  const directories = [info.DockerRootDir, ...containerds].filter((path) => existsSync(path));
  return directories.length > 0 ? directories : ["/"];
}

interface InspectedImage {
  readonly Id: string;
  readonly RepoTags: readonly string[] | null;
  readonly RepoDigests?: readonly string[] | null;
}

/** Gives the image `id` the additional name `reference`, taking it from any other image. */
export async function tagImage(engine: Engine, id: string, reference: string): Promise<void> {
  const { repository, tag } = splitReference(reference);
  const query = new URLSearchParams({ repo: repository, tag });
  await engine.post(`/images/${encodeURIComponent(id)}/tag?${query}`);
}

/** Splits `registry:5000/team/app:1.2@sha256:…`. Without a tag it is `latest`, as in Docker. */
export function splitReference(reference: string): { readonly repository: string; readonly tag: string } {
  const name = reference.replace(/@.*$/, "");
  const colon = name.lastIndexOf(":");
  if (colon <= name.lastIndexOf("/")) return { repository: name, tag: "latest" };
  return { repository: name.slice(0, colon), tag: name.slice(colon + 1) };
}

/**
 * Whether a roll-out gave the image this name: its tag is twelve digits of the commit, and a number if that commit was
 * built more than once.
 */
export function isNamedByCommit(reference: string): boolean {
  return /^[0-9a-f]{12}(?:-\d+)?$/.test(splitReference(reference).tag);
}

/**
 * Names the image `id` after the commit, beside `image` (`shop-app` → `shop-app:9f2c1ab04e77`). So the next build
 * does not leave it nameless, and a roll back finds it. If another image has that name, a number is added.
 *
 * @returns the new name
 */
export async function tagByCommit(
  engine: Engine,
  image: string,
  id: string,
  commit: string,
): Promise<string> {
  const { repository } = splitReference(image);
  for (let attempt = 1; ; attempt += 1) {
    const reference = `${repository}:${commit.slice(0, 12)}${attempt === 1 ? "" : `-${attempt}`}`;
    const holder = await inspectImage(engine, reference);
    if (holder?.id === id) return reference;
    if (holder === null) {
      await tagImage(engine, id, reference);
      return reference;
    }
  }
}

/** Whether an image's name contains its registry: `ghcr.io/team/app`, `localhost:5000/app`. */
export function namesRegistry(image: string): boolean {
  const { repository } = splitReference(image);
  const [first, ...rest] = repository.split("/");
  return rest.length > 0 && first !== undefined && (/[.:]/.test(first) || first === "localhost");
}
