import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";
import { ProblemError } from "#problems";
import { attempt, statOf } from "../files.ts";
import { type HttpTarget, openHttp, sendHttp } from "../http.ts";

/**
 * The Docker Engine API, as far as a roll-out needs it. Bodies are what the engine sent; a status of 400 and up
 * throws.
 */
export interface Engine {
  readonly get: (path: string) => Promise<Buffer>;
  /**
   * @param patienceMs time that the work itself may take, on top of the usual time-out
   * @param signal aborted to give it up
   */
  readonly post: (path: string, body?: unknown, patienceMs?: number, signal?: AbortSignal) => Promise<Buffer>;
  readonly delete: (path: string) => Promise<Buffer>;
}

/** The engine refused. Statuses 404 and 409 are ordinary answers to some requests. */
export class EngineRefusal extends ProblemError {
  readonly status: number;

  constructor(status: number, detail: string) {
    super({ code: "docker_refused", detail });
    this.status = status;
  }
}

/** The answer, or null if the engine answers with one of `statuses`. */
export async function nullIfMissing<Answer>(
  asked: Promise<Answer>,
  statuses: readonly number[] = [404],
): Promise<Answer | null> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof EngineRefusal && statuses.includes(error.status)) return null;
    throw error;
  }
}

/** GETs `path`. The engine's answers are trusted to have the shape of its API. */
export async function getJson<Shape>(engine: Engine, path: string): Promise<Shape> {
  return readJson<Shape>(await engine.get(path));
}

/** A JSON body of the engine, trusted to have the shape of its API. */
export function readJson<Shape>(body: Buffer): Shape {
  return JSON.parse(body.toString()) as Shape;
}

/** The query of a list that is filtered by labels and the like. */
export function filteredBy(filters: Readonly<Record<string, readonly string[]>>): string {
  return `filters=${encodeURIComponent(JSON.stringify(filters))}`;
}

/** Docker 25 is the first with `start_interval`, which finds a new container healthy early. */
export const neededApi = "1.44";

/** After this time without an answer, the engine counts as hung. */
const usualAnswerTimeoutMs = 120_000;

const headers = { "content-type": "application/json", host: "docker" };

/**
 * Connects to the engine at `dockerHost`: `unix:///var/run/docker.sock` (the default) or `tcp://host:port`.
 *
 * @throws ProblemError `docker_unreachable` from each call while nothing answers there
 */
export function connectEngine(
  dockerHost: string = defaultDockerHost,
  answerTimeoutMs: number = usualAnswerTimeoutMs,
): Engine {
  const targetOf = readDockerHost(dockerHost);
  const call = async (
    method: string,
    path: string,
    body?: unknown,
    patienceMs: number = 0,
    signal?: AbortSignal,
  ) => {
    const timeoutMs = answerTimeoutMs + patienceMs;
    const text = body === undefined ? "" : JSON.stringify(body);
    const asked = sendHttp(targetOf(path), { method, headers, body: text, timeoutMs, signal });
    const { status, body: answer } = await asked.catch((error) => {
      signal?.throwIfAborted();
      return reportUnreachable(dockerHost, error);
    });
    if (status < 400) return answer;
    throw refusal(status, `${method} ${path}`, answer);
  };
  return {
    get: (path) => call("GET", path),
    post: (path, body, patienceMs, signal) => call("POST", path, body, patienceMs, signal),
    delete: (path) => call("DELETE", path),
  };
}

/**
 * GETs what goes on, and is read as it comes until `signal` is aborted: events, or the log of a container.
 *
 * @throws EngineRefusal, or ProblemError `docker_unreachable`
 */
export async function openEngine(
  dockerHost: string = defaultDockerHost,
  path: string,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const asked = openHttp(readDockerHost(dockerHost)(path), { headers, signal });
  const answer = await asked.catch((error) => reportUnreachable(dockerHost, error));
  const { statusCode = 0 } = answer;
  if (statusCode < 400) return answer;
  throw refusal(statusCode, `GET ${path}`, await buffer(answer));
}

function refusal(status: number, asked: string, body: Buffer): EngineRefusal {
  return new EngineRefusal(status, `The Docker engine answered ${status} to ${asked}: ${messageIn(body)}`);
}

function readDockerHost(dockerHost: string): (path: string) => HttpTarget {
  const socketPath = dockerSocketPath(dockerHost);
  if (socketPath !== null) return (path) => ({ socketPath, path });
  if (dockerHost.startsWith("tcp://")) {
    const { hostname, port } = new URL(dockerHost);
    return (path) => new URL(`http://${hostname}:${port || 2375}${path}`);
  }
  throw new ProblemError({
    code: "docker_unreachable",
    detail: `DOCKER_HOST is ${dockerHost}, but only unix:// and tcp:// are supported.`,
  });
}

function messageIn(body: Buffer): string {
  const message = attempt(() => readJson<{ readonly message?: string }>(body).message, undefined);
  return message ?? body.toString().trim();
}

function reportUnreachable(dockerHost: string, error: NodeJS.ErrnoException): never {
  const detail = `${dockerHost}: ${hintFor(error, dockerHost)}`;
  throw new ProblemError({ code: "docker_unreachable", detail }, error);
}

function hintFor(error: NodeJS.ErrnoException, dockerHost: string): string {
  if (error.code === "EACCES") {
    const gid = statOf(dockerHost.replace("unix://", ""))?.gid ?? "number";
    return `this user may not open the Docker socket. Add it to the socket's group; in a container, write in the compose file, in Hotpush's service: group_add: ["${gid}"]`;
  }
  if (error.code === "ENOENT")
    return "there is no Docker socket. Mount it into the container, or set DOCKER_HOST.";
  if (error.code === "ECONNREFUSED")
    return "no Docker engine listens there. Is the Docker daemon running? A container sees the socket of an engine that was started again only after its own restart.";
  return `the Docker engine did not answer (${error.message}).`;
}

/** Whether this process runs in a container of Docker. A `/.dockerenv` proves nothing: some machines' images have it. */
export function isInContainer(): boolean {
  return containerIdIn(readFileSync("/proc/self/mountinfo", "utf8")) !== null;
}

/** The container id in the source of `/etc/hostname`: `…/containers/<64 digits>/hostname`. */
export function containerIdIn(mountInfo: string): string | null {
  return /\/containers\/([0-9a-f]{64})\/hostname /.exec(mountInfo)?.[1] ?? null;
}

/** Used if DOCKER_HOST is not set. */
const defaultDockerHost = "unix:///var/run/docker.sock";

/** The path of the socket that DOCKER_HOST names; null if it names something else, such as a TCP port. */
export function dockerSocketPath(dockerHost: string = defaultDockerHost): string | null {
  return dockerHost.startsWith("unix://") ? dockerHost.slice("unix://".length) : null;
}
