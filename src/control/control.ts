import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { ControlContext } from "./context.ts";
import { type Door, openDoor } from "./door.ts";
import { socketPath } from "./socket-path.ts";

/**
 * Opens the operator's door. What answers behind it is loaded when the first person comes: most of the time nobody
 * does. Where the door cannot be opened, that is said in the log, and the service goes on without.
 *
 * @returns the door, or null where there is none
 */
export async function openControl(context: ControlContext): Promise<Door | null> {
  const { statePath, log } = context;
  let server: Promise<Server> | null = null;
  const loadServer = async () => (await import("./server.ts")).createControlServer(context);

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

  try {
    return await openDoor(statePath, (socket) => void serve(socket));
  } catch (error) {
    const text = `Commands such as hotpush status cannot be answered: ${socketPath(statePath)} cannot be made`;
    log.error({ event: "control.unavailable", err: error }, text);
    return null;
  }
}
