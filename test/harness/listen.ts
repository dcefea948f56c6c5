import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type ListenOptions, type Server } from "node:net";
import type { Scope } from "./temporary.ts";
import { until } from "./until.ts";

/** Makes `server` listen on a free port until the test ends. @returns the port */
export async function listenHere(scope: Scope, server: Server, host = "127.0.0.1"): Promise<number> {
  await listenOn(scope, server, { host, port: 0 });
  return (server.address() as AddressInfo).port;
}

/** Makes `server` listen on the socket at `path` until the test ends. @returns the path */
export async function listenAt(scope: Scope, server: Server, path: string): Promise<string> {
  await listenOn(scope, server, { path });
  return path;
}

async function listenOn(scope: Scope, server: Server, options: ListenOptions): Promise<void> {
  const open = new Set<{ destroy: () => void }>();
  server.on("connection", (socket) => open.add(socket));
  server.listen(options);
  await once(server, "listening");
  scope.after(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
}

/**
 * A free port below those of outgoing connections (32,768 and up). No other test gets it before this process ends: an
 * abstract socket with its number reserves it, also for a program that is yet to listen there.
 */
export async function freePort(): Promise<number> {
  const port = randomInt(20_000, 32_000);
  const reservation = await tryListen(`\0hotpush-test-port-${port}`);
  const server = reservation && (await tryListen(port));
  if (reservation === null || server === null) return freePort();
  reservation.unref();
  server.close();
  await once(server, "close");
  return port;
}

/** @returns null if somebody else listens there */
async function tryListen(place: string | number): Promise<Server | null> {
  const server = createTcpServer();
  if (typeof place === "number") server.listen(place, "127.0.0.1");
  else server.listen(place);
  return await once(server, "listening").then(
    () => server,
    () => null,
  );
}

export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads any member of what it was sent
  readonly json: any;
}

type Answer = (response: ServerResponse, request: ReceivedRequest) => void;

/** A server of somebody else, who is sent reports. */
export type NotifyTargetServer = Awaited<ReturnType<typeof startTarget>>;

/** Starts a server that keeps what it is sent, and answers as `answer` does: 204 by default. */
export async function startTarget(
  scope: Scope,
  answer: Answer = (response) => void response.writeHead(204).end(),
) {
  const requests: ReceivedRequest[] = [];
  const server = createServer(async (request, response) => {
    response.on("error", () => {});
    const text = Buffer.concat(await request.toArray()).toString();
    const { method = "", url = "", headers } = request;
    const received = { method, path: url, headers, text, json: text === "" ? null : JSON.parse(text) };
    requests.push(received);
    answer(response, received);
  });
  const port = await listenHere(scope, server);
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    waitFor: (count: number) => until(`${count} requests`, () => requests.length >= count && requests),
  };
}
