import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { type HttpRequest, openHttp } from "../platform/http.ts";
import { withShortPath } from "../platform/unix-socket.ts";
import { CommandError } from "../problems.ts";
import { controlSocketPath } from "./control-socket.ts";
import type { ControlEvent } from "./deployment-json.ts";
import type { HoldEvent } from "./hold.ts";

/** The service could not be reached; `message` says, for a person, where it was expected and why that failed. */
export class NotRunningError extends CommandError {
  override readonly name = "NotRunningError";
  /** The state directory of the service. */
  readonly statePath: string;
  /** Whether this user may not use its socket. */
  readonly isForbidden: boolean;

  constructor(
    message: string,
    { statePath, isForbidden }: Pick<NotRunningError, "statePath" | "isForbidden">,
  ) {
    super(message);
    this.statePath = statePath;
    this.isForbidden = isForbidden;
  }
}

/**
 * Sends a request to the service whose state is in `statePath`.
 *
 * @returns the JSON object that it answered
 * @throws NotRunningError if it does not run or cannot be reached, CommandError with its own sentence if it refuses
 */
export async function callService<Answer>(
  statePath: string,
  method: "GET" | "POST",
  path: string,
  body?: object,
): Promise<Answer> {
  const response = await open(statePath, path, { method, ...(body && { body: JSON.stringify(body) }) });
  return JSON.parse(await text(response)) as Answer;
}

/**
 * Opens an answer that goes on; yields its pieces as they come.
 *
 * @throws as `callService`
 */
export async function openStream(
  statePath: string,
  path: string,
  signal?: AbortSignal,
): Promise<AsyncIterable<Buffer>> {
  return await open(statePath, path, { signal });
}

export interface EventsOptions {
  /** null: the deployment that runs, else the last that did. */
  readonly id: number | null;
  /** Whether to go on until the deployment has ended. */
  readonly isFollowing: boolean;
  /** `<attempt>:<byte>`, the place after the last line that is known. */
  readonly from?: string | null;
  /** Adds the project to a path. */
  readonly ofProject?: (path: string) => string;
  readonly signal: AbortSignal;
}

/**
 * Yields the events of a deployment as the service sends them. Ends early if `signal` is aborted or the service goes
 * away; the caller notices this because the last deployment that it got is not finished.
 *
 * @throws as `callService`
 */
export async function* readEvents(
  statePath: string,
  { id, isFollowing, from = null, ofProject = String, signal }: EventsOptions,
): AsyncGenerator<ControlEvent, void, void> {
  try {
    const place = from === null ? "" : `&from=${from}`;
    const path = `/deployments/${id ?? "latest"}/events?follow=${isFollowing}${place}`;
    yield* parseLines<ControlEvent>(await openStream(statePath, ofProject(path), signal));
  } catch (error) {
    if (!signal.aborted && (error as NodeJS.ErrnoException).code !== "ECONNRESET") throw error;
  }
}

/**
 * Keeps the service from starting deployments until `signal` is aborted or this process ends. Ends early if the service
 * goes away.
 *
 * @param body the reason, and who requests it
 * @throws as `callService`
 */
export async function* openHold(
  statePath: string,
  body: { readonly reason: string; readonly requestedBy: string | undefined },
  signal: AbortSignal,
): AsyncGenerator<HoldEvent, void, void> {
  try {
    const request = { method: "POST", body: JSON.stringify(body), signal };
    yield* parseLines<HoldEvent>(await open(statePath, "/hold", request));
  } catch (error) {
    if (!signal.aborted && (error as NodeJS.ErrnoException).code !== "ECONNRESET") throw error;
  }
}

async function* parseLines<Event>(stream: AsyncIterable<Buffer>): AsyncGenerator<Event, void, void> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const piece of stream) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield JSON.parse(line) as Event;
  }
}

async function open(statePath: string, path: string, request: HttpRequest): Promise<IncomingMessage> {
  const response = await connect(statePath, path, request).catch((error: NodeJS.ErrnoException) => {
    throw unreachable(statePath, error);
  });
  if ((response.statusCode ?? 500) < 400) return response;
  const { detail } = JSON.parse(await text(response)) as { readonly detail: string };
  throw new CommandError(detail);
}

async function connect(statePath: string, path: string, request: HttpRequest): Promise<IncomingMessage> {
  return await withShortPath(controlSocketPath(statePath), (socketPath) =>
    openHttp({ socketPath, path }, request),
  );
}

function unreachable(statePath: string, error: NodeJS.ErrnoException): Error {
  if (error.name === "AbortError") return error;
  const why = reasonOf(error.code, statePath, controlSocketPath(statePath));
  const isForbidden = error.code === "EACCES" || error.code === "EPERM";
  return why === null ? error : new NotRunningError(why, { statePath, isForbidden });
}

function reasonOf(code: string | undefined, statePath: string, path: string): string | null {
  const notRunning = `No Hotpush runs deployments in ${statePath}:`;
  switch (code) {
    case "ENOENT":
    case "ENOTDIR":
      return `${notRunning} there is no ${path}. ${nextSteps}`;
    case "ECONNREFUSED":
      return `${notRunning} ${path} was left by a service that is gone. ${nextSteps}`;
    case "EACCES":
    case "EPERM":
      return `Only the user of the service may use ${path}. Run this as that user, or as root: sudo hotpush …`;
    case "ECONNRESET":
    case "EPIPE":
      return "The service stopped, or is busy with other commands. Try again in a moment.";
    default:
      return null;
  }
}

const nextSteps =
  "Start it, or set STATE_PATH to its state directory. If it runs in a container: docker compose exec hotpush hotpush status";
