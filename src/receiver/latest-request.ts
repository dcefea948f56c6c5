import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** A request whose head has arrived whole, and the response to it. */
export interface LatestRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Gives the latest request of each connection, undefined if it has sent none yet; earlier ones are answered before it. */
export function trackLatestRequests(server: Server): (socket: Socket) => LatestRequest | undefined {
  const latest = new WeakMap<Socket, LatestRequest>();
  const note = (request: IncomingMessage, response: ServerResponse) =>
    latest.set(request.socket, { request, response });
  for (const event of ["request", "checkContinue", "checkExpectation"]) server.prependListener(event, note);
  return (socket) => latest.get(socket);
}

/** True if the request has come whole and its answer is with the kernel. */
export function isAnswered({ request, response }: LatestRequest): boolean {
  return request.complete && response.writableFinished;
}
