import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { type HttpRequest, openHttp } from "../platform/http.ts";
import { withShortPath } from "../platform/unix-socket.ts";
import { CommandError } from "../problems.ts";
import { controlSocketPath } from "./control-socket.ts";
import type { HoldEvent } from "./hold.ts";
import { openRemote, type RemoteServer } from "./remote-server.ts";

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

/** The service whose state is in a directory of this machine, or one on another machine. */
export type ServicePlace = string | RemoteServer;

/**
 * Sends a request to the service.
 *
 * @returns the JSON object that it answered
 * @throws NotRunningError if it does not run or cannot be reached, CommandError with its own sentence if it refuses
 */
export async function callService<Answer>(
  place: ServicePlace,
  method: "GET" | "POST",
  path: string,
  body?: object,
): Promise<Answer> {
  const response = await open(place, path, { method, ...(body && { body: JSON.stringify(body) }) });
  return JSON.parse(await text(response)) as Answer;
}

/**
 * Opens an answer that goes on; yields its pieces as they come.
 *
 * @throws as `callService`
 */
export async function openStream(
  place: ServicePlace,
  path: string,
  signal?: AbortSignal,
): Promise<AsyncIterable<Buffer>> {
  return await open(place, path, { signal });
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

/** The JSON objects of an answer that goes on, one a line. */
export async function* parseLines<Event>(stream: AsyncIterable<Buffer>): AsyncGenerator<Event, void, void> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const piece of stream) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield JSON.parse(line) as Event;
  }
}

async function open(place: ServicePlace, path: string, request: HttpRequest): Promise<IncomingMessage> {
  const response =
    typeof place === "string"
      ? await connect(place, path, request).catch((error: NodeJS.ErrnoException) => {
          throw unreachable(place, error);
        })
      : await openRemote(place, path, request);
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
