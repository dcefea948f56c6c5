import { closeSync, constants, openSync } from "node:fs";
import { join } from "node:path";

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
