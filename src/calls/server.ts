import type { Server } from "node:http";
import type { Socket } from "node:net";
import { createHttpServer } from "#platform/http-server";
import { listenOnSocket, type UnixSocket } from "#platform/listen";
import type { ServerContext } from "./context.ts";

/** A person has a terminal or two; more at once is a mistake, and must not cost the service its descriptors. */
const mostCommands = 32;
/** The page bounds those of each visitor (front/page/run-client.ts). */
const mostFrontCalls = 512;
/** A command sends its request at once and reads the answer at once. */
const idleSocketMs = 30_000;

/**
 * Opens one of `run`'s sockets: HTTP/1.1 and JSON, one request per connection. Only the holder of the runner lock calls this,
 * so a socket that is there was left by a service that is gone. The operator's may be used by root and the service's user
 * alone. So may that of `front`, but if `front` is a process of another user, then by the group of its directory.
 *
 * @returns null if it could not be made: then the service runs without it
 */
export async function openSocket(
  context: ServerContext,
  door: "operator" | "front",
  path: string,
): Promise<UnixSocket | null> {
  const { log } = context;
  let opened: Promise<Server> | null = null;
  const serve = async (socket: Socket) => {
    opened ??= createCallServer(context, door);
    (await opened).emit("connection", socket);
    socket.resume();
  };
  const mostConnections = door === "operator" ? mostCommands : mostFrontCalls;
  const options =
    door === "front" && context.isSplit
      ? { mode: 0o660, mostConnections, isOfGroup: true }
      : { mode: 0o600, mostConnections };
  try {
    return await listenOnSocket(path, options, (socket) => {
      serve(socket).catch((error: unknown) => {
        log.error({ event: "control.failed", err: error }, "A command could not be answered");
        socket.destroy();
      });
    });
  } catch (error) {
    const consequence = door === "operator" ? "Commands such as hotpush status" : "Calls of hotpush front";
    const text = `${consequence} cannot be answered: ${path} cannot be created`;
    log.error({ event: "control.unavailable", err: error }, text);
    return null;
  }
}

/** What answers is loaded when the first call comes: a start does not wait for it. */
async function createCallServer(context: ServerContext, door: "operator" | "front"): Promise<Server> {
  const { answerRequest } = await import("./answer.ts");
  const options = { maxHeaderSize: 16_384, requireHostHeader: false };
  const server = createHttpServer(options, context.log, async (request, response) => {
    response.setHeader("connection", "close");
    await answerRequest(context, door, request, response);
  });
  server.timeout = idleSocketMs;
  server.on("clientError", (_error, socket) => socket.destroy());
  return server;
}
