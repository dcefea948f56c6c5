import { closeSync, constants, openSync } from "node:fs";
import { join } from "node:path";

const socketName = "control.sock";

/** A directory held open, and short names for what is in it. */
export interface OpenDirectory {
  /** A path to `name` in it that is valid until `close`, in this process alone. */
  readonly at: (name: string) => string;
  readonly close: () => void;
}

/** The socket of the operator's door, for a person and for all but listening and connecting. */
export function socketPath(statePath: string): string {
  return join(statePath, socketName);
}

/**
 * Opens a directory so that a socket in it can be bound or reached however long its path is: the address of a Unix
 * socket holds 107 bytes (unix(7)), and a path by way of /proc/self/fd is always shorter.
 *
 * @throws Error where there is no such directory, or it may not be entered
 */
export function openDirectory(path: string): OpenDirectory {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  return { at: (name) => `/proc/self/fd/${fd}/${name}`, close: () => closeSync(fd) };
}

/** The short name of the socket in the state directory. */
export function shortSocketPath(directory: OpenDirectory): string {
  return directory.at(socketName);
}
