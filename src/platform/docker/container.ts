import { type Engine, EngineRefusal, filteredBy, getJson, nullIfMissing } from "./engine.ts";

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
  const found = await nullIfMissing(getJson<Inspected>(engine, `/containers/${id}/json`));
  return found && readContainer(found);
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
  await unlessGone(engine.post(`/containers/${id}/stop?t=${graceS}`, undefined, graceS * 1_000));
}

/** Removes a container and keeps its volumes. A container that is gone or being removed counts as removed. */
export async function removeContainer(engine: Engine, id: string): Promise<void> {
  await unlessGone(engine.delete(`/containers/${id}?force=1`));
}

interface Inspected {
  readonly Id: string;
  readonly Name: string;
  readonly Image: string;
  readonly RestartCount: number;
  readonly Created: string;
  readonly Mounts?: readonly {
    readonly Type: string;
    readonly Name?: string;
    readonly Source?: string;
    readonly Destination: string;
  }[];
  readonly Config: {
    readonly Image: string;
    readonly Labels: Readonly<Record<string, string>> | null;
    readonly StopTimeout?: number | null;
    readonly Env?: readonly string[] | null;
  };
  readonly State: {
    readonly Status: "created" | "running" | "paused" | "restarting" | "removing" | "exited" | "dead";
    readonly ExitCode: number;
    readonly Health?: {
      readonly Status: string;
      readonly Log: readonly { readonly Output: string }[] | null;
    };
  };
}

function readContainer({ Id, Name, Image, RestartCount, Created, Config, State, Mounts = [] }: Inspected) {
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
    healthLog: (State.Health?.Log ?? []).map(({ Output }) => Output.trim()) as readonly string[],
    exitCode: State.ExitCode,
    restartCount: RestartCount,
    createdAtMs: Date.parse(Created),
    /** Seconds between SIGTERM and SIGKILL, from the compose file. */
    stopGraceS: Config.StopTimeout ?? dockersGraceS,
    mounts: Mounts.map(readMount) as readonly ContainerMount[],
    /** As `NAME=value`, from its image, `environment` and `env_file`. */
    environment: Config.Env ?? [],
  };
}

export type ContainerMount = Readonly<ReturnType<typeof readMount>>;

/** `name` is the volume's, `source` the path on the host, `target` the path in the container. */
function readMount({ Type, Name = "", Source = "", Destination }: NonNullable<Inspected["Mounts"]>[number]) {
  return { type: Type, name: Name, source: Source, target: Destination };
}

function healthOf(status: string | undefined) {
  return status === "starting" || status === "healthy" || status === "unhealthy" ? status : null;
}

async function unlessGone(request: Promise<unknown>): Promise<void> {
  try {
    await request;
  } catch (error) {
    const isGone = error instanceof EngineRefusal && (error.status === 404 || error.status === 409);
    if (!isGone) throw error;
  }
}

/** The names of containers, for a message. */
export function namesOf(containers: readonly Pick<Container, "name">[]): string {
  return containers.map(({ name }) => name).join(", ");
}

/** A container that is still there, and why the engine refused to remove it. */
export interface UnremovedContainer {
  readonly container: Container;
  readonly reason: string;
}

/**
 * Stops and removes containers, all at once.
 *
 * @param longestGraceS the most seconds between SIGTERM and SIGKILL, even if a container's own stop grace period is
 * longer
 * @returns those that the engine refused to stop or to remove (a mount that is busy, for example)
 * @throws ProblemError `docker_unreachable`
 */
export async function discardContainers(
  engine: Engine,
  containers: readonly Container[],
  longestGraceS: number,
): Promise<readonly UnremovedContainer[]> {
  const discard = async (container: Container): Promise<UnremovedContainer | null> => {
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
