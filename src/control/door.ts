import { once } from "node:events";
import { chmodSync, lstatSync, mkdirSync, renameSync, rmdirSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { openDirectory, socketPath } from "./socket-path.ts";

/** A Unix socket that is ours until it is closed, or until a newcomer has put its own in the same place. */
export interface Door {
  /** Ends all connections, and removes the socket where it is still ours. */
  readonly close: () => void;
}

/** A person has a terminal or two; more at once is a mistake, and must not cost the receiver its descriptors. */
const mostConnections = 32;
const unfinishedName = ".control";

/**
 * Listens on the socket in `statePath`, taking the place of one that is there: it is for whoever holds the runner lock,
 * so what is there was left by a service that is gone.
 *
 * The socket is made in a directory that nobody else can enter, and moved to its place when its mode is 0600: there is
 * no moment at which another user could connect, nor one without a socket.
 *
 * @param onConnection called with a socket that is paused, whose errors are taken care of
 * @throws Error where it cannot be made
 */
export async function openDoor(statePath: string, onConnection: (socket: Socket) => void): Promise<Door> {
  const sockets = new Set<Socket>();
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
    onConnection(socket);
  });
  server.maxConnections = mostConnections;
  // What goes wrong with a connection that comes in costs that connection.
  server.on("error", () => {});
  const unfinished = join(statePath, unfinishedName);
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { mode: 0o700 });
  // Open until the end: Node removes the name that it has bound when it closes, and that one must still be this.
  const directory = openDirectory(unfinished);
  const path = socketPath(statePath);
  server.listen(directory.at("socket"));
  try {
    await Promise.race([once(server, "listening"), failure(server)]);
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

function failure(server: ReturnType<typeof createServer>): Promise<never> {
  return new Promise((_resolve, reject) => server.once("error", reject));
}

/** Which file is at `path`, or null where none is. */
function identity(path: string): string | null {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats ? `${stats.dev}:${stats.ino}` : null;
}
