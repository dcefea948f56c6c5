import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
} from "node:fs";
import type { Server } from "node:http";
import { createServer, type Socket } from "node:net";
import { basename, dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { ProblemError } from "#problems";
import { O_PATH } from "./foreign-files.ts";

/**
 * Starts to listen.
 *
 * @param prefix of the names of the variables with the host and the port
 * @throws ProblemError `address_unavailable` if the address cannot be used, with what to set instead
 */
export async function listen(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
  prefix: "WEBHOOK" | "PAGE",
): Promise<void> {
  try {
    server.listen({ host, port });
    await once(server, "listening");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ProblemError(
      { code: "address_unavailable", detail: addressDetail(code, { host, port, prefix }) },
      error,
    );
  }
}

function addressDetail(
  code: string | undefined,
  { host, port, prefix }: { readonly host: string; readonly port: number; readonly prefix: string },
): string {
  if (code === "EADDRINUSE")
    return `Port ${port} is taken by another program. Set ${prefix}_PORT to a free one.`;
  if (code === "EACCES")
    return `Port ${port} may not be taken by this user. Set ${prefix}_PORT to one above 1023.`;
  return `The service cannot listen on ${host}:${port} (${code ?? "unknown error"}). Set ${prefix}_HOST to an address of this machine.`;
}

/** A turn of the event loop that takes longer had something to do: others may have connected meanwhile. */
const quietTurnMs = 0.5;
const longestWaitMs = 500;

/**
 * Stops listening and gives open requests `lastAnswersMs` to be answered.
 *
 * When a listening socket is closed, the kernel resets the connections that it has taken and that nobody has accepted
 * yet, and git hosts do not retry. So it is closed at the end of a turn of the event loop that did little but accept.
 */
export async function closeServer(server: Server, lastAnswersMs: number): Promise<void> {
  await quietTurn();
  const closed = new Promise((resolve) => server.close(resolve));
  await Promise.race([closed, pause(lastAnswersMs, null, { ref: false })]);
  server.closeAllConnections();
  await closed;
}

async function quietTurn(): Promise<void> {
  const startMs = performance.now();
  for (let turnMs = startMs; ; turnMs = performance.now()) {
    await new Promise(setImmediate);
    const nowMs = performance.now();
    const isWholeTurn = turnMs !== startMs;
    if ((isWholeTurn && nowMs - turnMs < quietTurnMs) || nowMs - startMs > longestWaitMs) return;
  }
}

/** A Unix socket that is ours until it is closed, or until another process has put its own in the same place. */
export interface UnixSocket {
  /** Closes all connections, and removes the socket if it is still ours. */
  readonly close: () => void;
}

export interface ListenOptions {
  /** Who may connect. */
  readonly mode: number;
  readonly mostConnections: number;
  /** Gives the socket to the group of its directory, which must be closed to changes by others. */
  readonly isOfGroup?: boolean;
}

/**
 * Listens on a Unix socket at `path` and replaces one that is there: the caller makes sure that it was left by a process
 * that is gone.
 *
 * The socket is made in a directory that nobody else can enter, and moved to its place once its mode is right. So there is
 * no moment at which somebody else could connect, nor one without a socket.
 *
 * @param onConnection called with a paused socket, whose errors are handled
 * @throws Error if the socket cannot be made
 */
export async function listenOnSocket(
  path: string,
  { mode, mostConnections, isOfGroup = false }: ListenOptions,
  onConnection: (socket: Socket) => void,
): Promise<UnixSocket> {
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
  const group = isOfGroup ? groupOf(dirname(path)) : null;
  const unfinished = join(dirname(path), `.${basename(path)}`);
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { mode: 0o700 });
  // Kept open until close: Node then unlinks the path that it bound, which must still lead to this directory. The address of
  // a Unix socket holds 107 bytes (unix(7)), and this one is always shorter.
  const directory = openSync(unfinished, constants.O_RDONLY | constants.O_DIRECTORY);
  const made = `/proc/self/fd/${directory}/socket`;
  try {
    server.listen(made);
    await once(server, "listening");
    chmodSync(made, mode);
    if (group !== null) chownSync(made, process.getuid?.() ?? 0, group);
    renameSync(join(unfinished, "socket"), path);
    rmdirSync(unfinished);
  } catch (error) {
    server.close();
    closeSync(directory);
    throw error;
  }
  const own = identity(path);
  return {
    close() {
      server.close(() => closeSync(directory));
      for (const socket of sockets) socket.destroy();
      if (own !== null && identity(path) === own) rmSync(path, { force: true });
    },
  };
}

/** Who can change the directory could exchange the socket while it is given away. */
function groupOf(directory: string): number {
  const { uid, gid, mode } = statSync(directory);
  if (uid === process.getuid?.() && (mode & 0o022) === 0) return gid;
  throw new Error(
    `${directory} can be changed by other users. Run: chown ${process.getuid?.()} ${directory} && chmod u=rwx,g=rx,o= ${directory}`,
  );
}

/**
 * Runs `work` with a short path of the socket at `path`, which is valid until then. Others may put anything in its place: a
 * link is not followed, and the path leads to the socket that was found, whatever is there later.
 *
 * @throws the system's error, or one with the code ENOTSOCK
 */
export async function withShortPath<Result>(
  path: string,
  work: (shortPath: string) => Promise<Result>,
): Promise<Result> {
  const fd = openSync(path, O_PATH | constants.O_NOFOLLOW);
  try {
    if (fstatSync(fd).isSocket()) return await work(`/proc/self/fd/${fd}`);
    throw Object.assign(new Error(`ENOTSOCK: ${path} is no socket`), {
      code: "ENOTSOCK",
      syscall: "connect",
    });
  } finally {
    closeSync(fd);
  }
}

/** Device and inode of the file at `path`, or null if there is none. */
function identity(path: string): string | null {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats ? `${stats.dev}:${stats.ino}` : null;
}

/** Whether a program on this machine listens on the TCP port `port`, on any address. */
export function isPortTaken(port: number): boolean {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const lines = ["/proc/net/tcp", "/proc/net/tcp6"].flatMap((table) => readTable(table).split("\n"));
  const rows = lines.map((line) => line.trim().split(/\s+/));
  // 0A is LISTEN.
  return rows.some(([, local, , state]) => local?.endsWith(wanted) && state === "0A");
}

/** "" without IPv6. */
function readTable(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
