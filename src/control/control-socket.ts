import type { Server } from "node:http";
import type { Socket } from "node:net";
import { join } from "node:path";
import { listenOnSocket, type UnixSocket } from "../platform/unix-socket.ts";
import type { ControlSources } from "./route.ts";

/** A person has a terminal or two; more at once is a mistake, and must not cost the receiver its descriptors. */
const mostConnections = 32;

/** The control socket of the service whose state is in `statePath`. */
export function controlSocketPath(statePath: string): string {
  return join(statePath, "control.sock");
}

/**
 * Opens the control socket. Only the holder of the runner lock calls this, so a socket that is there was left by a service
 * that is gone. The server behind it is loaded at the first connection, because most services never get one. If the socket
 * cannot be made, this is logged, and the service runs without it.
 *
 * @returns the socket, or null if it could not be made
 */
export async function openControlSocket(sources: ControlSources): Promise<UnixSocket | null> {
  const { statePath, log } = sources;
  let server: Promise<Server> | null = null;
  const loadServer = async () => (await import("./server.ts")).createControlServer(sources);

  async function serve(socket: Socket): Promise<void> {
    try {
      server ??= loadServer();
      (await server).emit("connection", socket);
      socket.resume();
    } catch (error) {
      log.error({ event: "control.failed", err: error }, "A command could not be answered");
      socket.destroy();
    }
  }

  const path = controlSocketPath(statePath);
  try {
    return await listenOnSocket(path, { mode: 0o600, mostConnections }, (socket) => void serve(socket));
  } catch (error) {
    const text = `Commands such as hotpush status cannot be answered: ${path} cannot be created`;
    log.error({ event: "control.unavailable", err: error }, text);
    return null;
  }
}
