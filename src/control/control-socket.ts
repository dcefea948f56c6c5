import { once } from "node:events";
import {
  chmodSync,
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmdirSync,
  rmSync,
} from "node:fs";
import type { Server } from "node:http";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import type { ControlContext } from "./route.ts";

/** A Unix socket that is ours until it is closed, or until another instance has put its own in the same place. */
export interface ControlSocket {
  /** Closes all connections, and removes the socket if it is still ours. */
  readonly close: () => void;
}

/**
 * Opens the control socket. The server behind it is loaded at the first connection, because most services never get
 * one. If the socket cannot be made, this is logged, and the service runs without it.
 *
 * @returns the socket, or null if it could not be made
 */
export async function openControlSocket(context: ControlContext): Promise<ControlSocket | null> {
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
    return await listenInStateDirectory(statePath, (socket) => void serve(socket));
  } catch (error) {
    const text = `Commands such as hotpush status cannot be answered: ${socketPath(statePath)} cannot be created`;
    log.error({ event: "control.unavailable", err: error }, text);
    return null;
  }
}

/** A person has a terminal or two; more at once is a mistake, and must not cost the receiver its descriptors. */
const mostConnections = 32;
const unfinishedName = ".control";

/**
 * Listens on the socket in `statePath` and replaces one that is there: only the holder of the runner lock calls this,
 * so an existing socket was left by a service that is gone.
 *
 * The socket is made in a directory that nobody else can enter, and moved to its place once its mode is 0600. So there
 * is no moment at which another user could connect, nor one without a socket.
 *
 * @param onConnection called with a paused socket, whose errors are handled
 * @throws Error if the socket cannot be made
 */
export async function listenInStateDirectory(
  statePath: string,
  onConnection: (socket: Socket) => void,
): Promise<ControlSocket> {
  const sockets = new Set<Socket>();
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
    onConnection(socket);
  });
  server.maxConnections = mostConnections;
  // A failed accept costs that connection and nothing else.
  server.on("error", () => {});
  const unfinished = join(statePath, unfinishedName);
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { mode: 0o700 });
  // Kept open until close: Node then unlinks the path that it bound, which must still lead to this directory.
  const directory = openDirectory(unfinished);
  const path = socketPath(statePath);
  server.listen(directory.at("socket"));
  try {
    await once(server, "listening");
    chmodSync(directory.at("socket"), 0o600);
    renameSync(join(unfinished, "socket"), path);
    rmdirSync(unfinished);
  } catch (error) {
    server.close();
    directory.close();
    throw error;
  }
  const own = identity(path);
  return {
    close() {
      server.close(() => directory.close());
      for (const socket of sockets) socket.destroy();
      if (own !== null && identity(path) === own) rmSync(path, { force: true });
    },
  };
}

/** Device and inode of the file at `path`, or null if there is none. */
function identity(path: string): string | null {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats ? `${stats.dev}:${stats.ino}` : null;
}

const socketName = "control.sock";

/** A directory held open, and short paths to what is in it. */
export interface OpenDirectory {
  /** A path to `name` in the directory; valid until `close`, in this process alone. */
  readonly at: (name: string) => string;
  readonly close: () => void;
}

/** The control socket, for messages and for everything but listening and connecting. */
export function socketPath(statePath: string): string {
  return join(statePath, socketName);
}

/**
 * Opens a directory so that a socket in it can be bound or reached however long its path is: the address of a Unix
 * socket holds 107 bytes (unix(7)), and a path below /proc/self/fd is always shorter.
 *
 * @throws Error if there is no such directory, or it may not be entered
 */
export function openDirectory(path: string): OpenDirectory {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  return { at: (name) => `/proc/self/fd/${fd}/${name}`, close: () => closeSync(fd) };
}

/** The short path of the control socket in the state directory. */
export function shortSocketPath(directory: OpenDirectory): string {
  return directory.at(socketName);
}
