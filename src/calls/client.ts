import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { readNamedFile } from "#config/secret";
import { operatorSocketPath } from "#config/server";
import { type HttpRequest, openHttp, withShortPath } from "#platform/http";
import { CommandError } from "#problems";
import type { ControlEvent, HoldEvent, ServiceLogEvent } from "./shapes.ts";
import { type CallName, calls, type GivenBy, requestFor, type TakenBy } from "./table.ts";

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

/** The members of a call. Those that are not given are left to the service. */
export type Asked<Name extends CallName> = {
  readonly [Key in keyof TakenBy<Name>]?: TakenBy<Name>[Key] | undefined;
};

export interface CallOptions {
  /** Who asks, for the record; only the operator's socket takes it. */
  readonly requestedBy?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Makes a call.
 *
 * @returns what it gives
 * @throws NotRunningError if the service does not run or cannot be reached, CommandError with its own sentence if it refuses
 */
export async function callRun<Name extends CallName>(
  place: ServicePlace,
  name: Name,
  asked: Asked<Name>,
  options: CallOptions = {},
): Promise<GivenBy<Name>> {
  return JSON.parse(await text(await openCall(place, name, asked, options))) as GivenBy<Name>;
}

async function openCall<Name extends CallName>(
  place: ServicePlace,
  name: Name,
  asked: Asked<Name>,
  { requestedBy, signal }: CallOptions = {},
): Promise<IncomingMessage> {
  const { path, ...request } = requestFor(calls[name], asked);
  const response =
    typeof place === "string"
      ? await openLocal(place, path, { ...request, signal, headers: reportedIn(requestedBy) })
      : await openRemote(place, path, { ...request, signal });
  if ((response.statusCode ?? 500) < 400) return response;
  const { detail } = JSON.parse(await text(response)) as { readonly detail: string };
  throw new CommandError(detail);
}

/** What each call that goes on sends. */
interface EventOf {
  /** The last one is the deployment as it ended, unless the service went away. */
  readonly events: ControlEvent;
  readonly serviceLog: ServiceLogEvent;
  /** No deployment starts until `signal` is aborted or this process ends. */
  readonly hold: HoldEvent;
}

/**
 * Makes a call that goes on, and yields what it sends. Ends early if `signal` is aborted or the service goes away.
 *
 * @throws as `callRun`
 */
export function followRun<Name extends keyof EventOf>(
  place: ServicePlace,
  name: Name,
  asked: Asked<Name>,
  options: CallOptions & { readonly signal: AbortSignal },
): AsyncGenerator<EventOf[Name], void, void> {
  return readLines<EventOf[Name]>(openCall(place, name, asked, options), options.signal);
}

/** The JSON objects of an answer that goes on, one a line, or events. It ends early if the other side breaks it off. */
export async function* readLines<Event>(
  opening: Promise<IncomingMessage> | IncomingMessage,
  signal: AbortSignal,
): AsyncGenerator<Event, void, void> {
  let rest = "";
  const decoder = new TextDecoder();
  try {
    for await (const piece of (await opening) as AsyncIterable<Buffer>) {
      const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      // Between events are empty lines, and those that keep the connection open.
      for (const line of lines)
        if (line.includes("{")) yield JSON.parse(line.replace(/^data: /, "")) as Event;
    }
  } catch (error) {
    if (!signal.aborted && (error as NodeJS.ErrnoException).code !== "ECONNRESET") throw error;
  }
}

/** A header has no letters but those of ASCII. */
function reportedIn(name: string | undefined): Readonly<Record<string, string>> {
  return name ? { "x-requested-by": encodeURIComponent(name.toWellFormed().slice(0, 300)) } : {};
}

async function openLocal(statePath: string, path: string, request: HttpRequest): Promise<IncomingMessage> {
  const socket = operatorSocketPath(statePath);
  return await withShortPath(socket, (socketPath) => openHttp({ socketPath, path }, request)).catch(
    (error: NodeJS.ErrnoException) => {
      throw unreachable(statePath, error);
    },
  );
}

function unreachable(statePath: string, error: NodeJS.ErrnoException): Error {
  const path = operatorSocketPath(statePath);
  const notRunning = `No Hotpush runs deployments in ${statePath}:`;
  const missing = `${notRunning} there is no ${path}. ${nextSteps}`;
  const forbidden = `Only the user of the service may use ${path}. Run this as that user, or as root: sudo hotpush …`;
  const busy = "The service stopped, or is busy with other commands. Try again in a moment.";
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: missing,
    ENOTDIR: missing,
    ECONNREFUSED: `${notRunning} ${path} was left by a service that is gone. ${nextSteps}`,
    EACCES: forbidden,
    EPERM: forbidden,
    ECONNRESET: busy,
    EPIPE: busy,
  };
  const why = reasons[error.code ?? ""];
  return why === undefined ? error : new NotRunningError(why, { statePath, isForbidden: why === forbidden });
}

const nextSteps =
  "Start it, or set STATE_PATH to its state directory. If it runs in a container: docker compose exec hotpush hotpush status";

/** A Hotpush on another machine, reached by the address of its page. */
export interface RemoteServer {
  readonly url: URL;
  readonly token: string;
}

/**
 * The server of HOTPUSH_SERVER, with the token of HOTPUSH_TOKEN_FILE.
 *
 * @returns null if HOTPUSH_SERVER is not set
 * @throws CommandError if the address or the file cannot be used
 */
export function findRemoteServer(env: NodeJS.ProcessEnv): RemoteServer | null {
  const { HOTPUSH_SERVER: address, HOTPUSH_TOKEN_FILE: file } = env;
  if (!address) return null;
  const url = URL.canParse(address) ? new URL(address) : null;
  const isLocal = url?.hostname === "localhost" || url?.hostname === "127.0.0.1";
  if (url === null || !(url.protocol === "https:" || (url.protocol === "http:" && isLocal)))
    throw new CommandError(
      `The server is "${address}": write the address of its page, such as https://hotpush.example.com (http only for localhost).`,
    );
  if (!file)
    throw new CommandError(
      "A token is missing. On the server: hotpush open --token laptop --deploy. Write it to a file, and name that: --token-file <path>, or HOTPUSH_TOKEN_FILE.",
    );
  return { url, token: readToken(file) };
}

function readToken(path: string): string {
  const text = readNamedFile("HOTPUSH_TOKEN_FILE", path, true);
  if (typeof text !== "string") throw new CommandError(text.fault);
  if (/^\S{1,100}$/.test(text.trim())) return text.trim();
  throw new CommandError(`There is no token in ${path}: hotpush open --token <name> prints one.`);
}

/** Sends a request to the page of the server, whose API has the calls of `run`. */
async function openRemote(
  { url, token }: RemoteServer,
  path: string,
  request: HttpRequest,
): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${token}` };
  const target = new URL(`/api${path}`, url);
  const answer = await openHttp(target, { ...request, headers }).catch((error: NodeJS.ErrnoException) => {
    if (error.name === "AbortError") throw error;
    throw new CommandError(`${url.host} cannot be reached: ${error.message || error.code}.`);
  });
  const status = answer.statusCode ?? 0;
  const type = answer.headers["content-type"] ?? "";
  const isProblem = type.startsWith("application/problem+json");
  // Events come with a beat every 15 s: a connection that is silent for longer was lost without a word.
  const lost = Object.assign(new Error("The connection was lost."), { code: "ECONNRESET" });
  if (type.startsWith("text/event-stream")) answer.setTimeout(60_000, () => answer.destroy(lost));
  if (status !== 401 && (status < 300 ? !type.startsWith("text/html") : isProblem)) return answer;
  answer.destroy();
  throw new CommandError(
    status === 401
      ? `${url.host} does not know this token. It may have been revoked: hotpush open --list, on the server.`
      : `${url.host} answered with status ${status}, not like the page of a Hotpush. Is it the address of the page?`,
  );
}
