import type { Server } from "node:http";
import type { Socket } from "node:net";
import { join } from "node:path";
import { type ListenOptions, listenOnSocket, type UnixSocket } from "../platform/unix-socket.ts";
import type { ControlSources } from "./route.ts";

/** A person has a terminal or two; more at once is a mistake, and must not cost the receiver its descriptors. */
const mostCommands = 32;
/** The page bounds those of each visitor (page/run-client.ts). */
const mostPageCalls = 512;

/** The control socket of the service whose state is in `statePath`. */
export function controlSocketPath(statePath: string): string {
  return join(statePath, "control.sock");
}

/**
 * Opens the operator's socket. Only the holder of the runner lock calls this, so a socket that is there was left by a service
 * that is gone.
 *
 * @returns the socket, or null if it could not be made: then the service runs without it
 */
export function openControlSocket(sources: ControlSources): Promise<UnixSocket | null> {
  return open({
    ...{
      sources,
      path: controlSocketPath(sources.statePath),
      consequence: "Commands such as hotpush status",
    },
    options: { mode: 0o600, mostConnections: mostCommands },
    load: async () => (await import("./server.ts")).createControlServer(sources),
  });
}

/**
 * Opens the page's socket, on which every call carries the credential of a visitor. The group of its directory may use it,
 * because the page is a process of another user.
 *
 * @returns as `openControlSocket`
 */
export function openPageSocket(sources: ControlSources, path: string): Promise<UnixSocket | null> {
  return open({
    ...{
      sources,
      path,
      consequence: "Calls of hotpush front",
      isWanted: (sources.taking ?? sources.pageUrl) !== null,
    },
    options: { mode: 0o660, mostConnections: mostPageCalls, isOfGroup: true },
    load: async () => (await import("./page-server.ts")).createPageServer(sources),
  });
}

interface Opening {
  /** Whether somebody misses it if it cannot be opened. Default: yes. */
  readonly isWanted?: boolean;
  readonly sources: ControlSources;
  readonly path: string;
  readonly options: ListenOptions;
  /** What cannot be answered without it. */
  readonly consequence: string;
  readonly load: () => Promise<Server>;
}

/** The server is loaded at the first connection, because most services never get one. */
async function open({
  sources: { log },
  path,
  options,
  consequence,
  load,
  isWanted = true,
}: Opening): Promise<UnixSocket | null> {
  let server: Promise<Server> | null = null;

  async function serve(socket: Socket): Promise<void> {
    server ??= load();
    (await server).emit("connection", socket);
    socket.resume();
  }

  function fail(socket: Socket, error: unknown): void {
    log.error({ event: "control.failed", err: error }, "A command could not be answered");
    socket.destroy();
  }

  try {
    return await listenOnSocket(path, options, (socket) => {
      serve(socket).catch((error: unknown) => fail(socket, error));
    });
  } catch (error) {
    const text = `${consequence} cannot be answered: ${path} cannot be created`;
    log[isWanted ? "error" : "debug"]({ event: "control.unavailable", err: error }, text);
    return null;
  }
}
