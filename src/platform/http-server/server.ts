import type { IncomingMessage, Server, ServerOptions, ServerResponse } from "node:http";
import type { Log } from "#log";
import { createLogThrottle } from "../log-throttle.ts";
import { isClosing, problemAnswer, type Refusal, sendAnswer } from "./answer.ts";

const { createServer } = process.getBuiltinModule("node:http");

/** Answers a request. Its promise settles when the handler has no more to do, or rejects with a fault. */
export type HandleRequest = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

const internalError: Refusal = {
  code: "internal_error",
  detail: "This is a fault in Hotpush. Its log has the reason.",
};
/** Faults that are logged one by one in a minute: while a disk is full, every request may be one. */
const faultsPerMinute = 20;

/**
 * Makes an HTTP server; there is no other way. A fault that a handler throws is logged once and answered with 500. If the
 * answer has begun, its connection is cut. The process goes on.
 */
export function createHttpServer(options: ServerOptions, log: Log, handle: HandleRequest): Server {
  const mayLog = createLogThrottle<"fault">(faultsPerMinute, 60_000, (_, count) =>
    log.error({ event: "request.failed_more", count }, `${count} more requests failed because of a fault`),
  );

  function fail(error: unknown, request: IncomingMessage, response: ServerResponse): void {
    // A client that leaves before its body is whole is no fault.
    if (request.errored !== null && error === request.errored) return;
    if (mayLog("fault"))
      log.error({ event: "request.failed", err: error }, "A request failed because of a fault in Hotpush");
    if (response.headersSent || response.destroyed) response.destroy();
    else sendAnswer(response, problemAnswer(internalError));
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await handle(request, response);
    } catch (error) {
      fail(error, request, response);
    }
  }

  return createServer(options, (request, response) => {
    // Without listeners, the error of a connection that breaks off would end the process.
    request.on("error", () => {});
    response.on("error", () => response.destroy());
    // After a refused request, nothing on its connection is read.
    if (isClosing(request.socket)) return;
    serve(request, response).catch(() => response.destroy());
  });
}
