import { type Engine, EngineRefusal, nullIfMissing } from "./engine.ts";

/** Where nobody says otherwise. */
const dockersGraceS = 10;

/** A container of a compose service, as the engine tells it at one moment. */
export interface Container {
  readonly id: string;
  readonly name: string;
  readonly service: string;
  /** Compose's number of it within its service. */
  readonly number: number;
  /** The id of its image, and the name that it was started by. */
  readonly image: string;
  readonly imageName: string;
  readonly configHash: string;
  readonly status: "created" | "running" | "paused" | "restarting" | "removing" | "exited" | "dead";
  /** Null where it has no health check. */
  readonly health: "starting" | "healthy" | "unhealthy" | null;
  readonly healthLog: readonly string[];
  readonly exitCode: number;
  readonly restartCount: number;
  readonly createdAtMs: number;
  readonly startedAtMs: number;
  /** Seconds between SIGTERM and SIGKILL that the compose file gives it. */
  readonly stopGraceS: number;
  readonly mounts: readonly Mount[];
  /** As `NAME=value`: what its image, `environment` and `env_file` say. */
  readonly environment: readonly string[];
}

export interface Mount {
  readonly type: string;
  /** The volume's name; empty where it is none. */
  readonly name: string;
  /** The path on the host. */
  readonly source: string;
  /** The path in the container. */
  readonly target: string;
}

/** The containers of a compose project, running or not, oldest first; one-off ones (`compose run`) are left out. */
export async function listContainers(
  engine: Engine,
  project: string,
  service?: string,
): Promise<readonly Container[]> {
  const label = [`com.docker.compose.project=${project}`, "com.docker.compose.oneoff=False"];
  if (service !== undefined) label.push(`com.docker.compose.service=${service}`);
  const filters = encodeURIComponent(JSON.stringify({ label }));
  const listed: readonly { readonly Id: string }[] = parse(
    await engine.get(`/containers/json?all=1&filters=${filters}`),
  );
  const containers = await Promise.all(listed.map(({ Id }) => inspectContainer(engine, Id)));
  return containers.filter((container) => container !== null).sort((a, b) => a.number - b.number);
}

/** One container as it is now, or null where it is gone. */
export async function inspectContainer(engine: Engine, id: string): Promise<Container | null> {
  const answer = await nullIfMissing(engine.get(`/containers/${id}/json`));
  return answer && readContainer(parse(answer));
}

/**
 * Asks a container to stop and kills it after its own stop grace period, but after `longestS` seconds at the latest.
 * One that has stopped or is gone is fine.
 */
export async function stopContainer(
  engine: Engine,
  { id, stopGraceS }: Container,
  longestS: number,
): Promise<void> {
  const graceS = Math.min(stopGraceS, longestS);
  await unlessGone(engine.post(`/containers/${id}/stop?t=${graceS}`, undefined, graceS * 1_000));
}

/** Removes a container; its volumes stay. One that is gone, or being removed, is fine. */
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
    readonly Status: Container["status"];
    readonly ExitCode: number;
    readonly StartedAt: string;
    readonly Health?: {
      readonly Status: string;
      readonly Log: readonly { readonly Output: string }[] | null;
    };
  };
}

function readContainer({
  Id,
  Name,
  Image,
  RestartCount,
  Created,
  Config,
  State,
  Mounts = [],
}: Inspected): Container {
  const label = (name: string) => Config.Labels?.[`com.docker.compose.${name}`] ?? "";
  return {
    id: Id,
    name: Name.replace(/^\//, ""),
    service: label("service"),
    number: Number(label("container-number")),
    image: Image,
    imageName: Config.Image,
    configHash: label("config-hash"),
    status: State.Status,
    health: healthOf(State.Health?.Status),
    healthLog: (State.Health?.Log ?? []).map(({ Output }) => Output.trim()),
    exitCode: State.ExitCode,
    restartCount: RestartCount,
    createdAtMs: Date.parse(Created),
    startedAtMs: Date.parse(State.StartedAt),
    stopGraceS: Config.StopTimeout ?? dockersGraceS,
    mounts: Mounts.map((mount) => ({
      type: mount.Type,
      name: mount.Name ?? "",
      source: mount.Source ?? "",
      target: mount.Destination,
    })),
    environment: Config.Env ?? [],
  };
}

function healthOf(status: string | undefined): Container["health"] {
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

/** The engine's answers are trusted to have the shape of its API. */
function parse<Shape>(body: Buffer): Shape {
  return JSON.parse(body.toString()) as Shape;
}

/** A container that is still there, and why the engine refused to take it away. */
export interface Kept {
  readonly container: Container;
  readonly reason: string;
}

/**
 * Stops and removes containers, all at once.
 *
 * @param longestGraceS - the most seconds between SIGTERM and SIGKILL, where a container's own stop grace period is longer
 * @returns those that the engine refused to stop or to remove (a mount that is busy, for example)
 * @throws ProblemError `docker_unreachable`
 */
export async function discardContainers(
  engine: Engine,
  containers: readonly Container[],
  longestGraceS: number,
): Promise<readonly Kept[]> {
  const kept = await Promise.all(
    containers.map((container) => discardContainer(engine, container, longestGraceS)),
  );
  return kept.filter((one) => one !== null);
}

async function discardContainer(
  engine: Engine,
  container: Container,
  longestGraceS: number,
): Promise<Kept | null> {
  try {
    await stopContainer(engine, container, longestGraceS);
    await removeContainer(engine, container.id);
    return null;
  } catch (error) {
    if (!(error instanceof EngineRefusal)) throw error;
    return { container, reason: error.problem.detail };
  }
}
