import { join } from "node:path";
import { openControlSocket, openPageSocket } from "./control/control-socket.ts";
import type { ControlSources } from "./control/route.ts";
import type { Taking } from "./inbox/take-pushes.ts";
import { type HeldLock, waitForLock } from "./platform/file-lock.ts";
import { keepTrying } from "./platform/keep-trying.ts";
import { isSystemError } from "./platform/run-command.ts";
import type { UnixSocket } from "./platform/unix-socket.ts";

export interface LeaderOptions extends Omit<ControlSources, "taking"> {
  /** Begins to run deployments, and to take pushes from an inbox if that is where they come from. */
  readonly onLeading: () => Taking | null;
  readonly pageSocket: string;
  readonly stopping: AbortSignal;
}

/** What only the leader has: the runner lock, the pushes of an inbox, and the sockets that could be opened. */
export interface Leadership {
  readonly lock: HeldLock;
  readonly taking: Taking | null;
  readonly sockets: readonly UnixSocket[];
}

/**
 * Waits until this instance is the leader of those that share the state directory. Then it runs deployments and answers
 * commands.
 *
 * @returns null if the service stopped first
 */
export async function becomeLeader(options: LeaderOptions): Promise<Leadership | null> {
  const { statePath, stopping, log } = options;
  const text = "Another instance runs the deployments; this one records";
  const onWait = () => log.info({ event: "runner.waiting" }, text);
  const what = "This instance cannot find out whether it may run deployments";
  const lockOnce = () => waitForLock(join(statePath, "runner.lock"), { signal: stopping, onWait });
  const lock = await keepTrying(lockOnce, { what, canPass: isSystemError, signal: stopping, log });
  if (lock === null) return null;
  const taking = options.onLeading();
  const sources = { ...options, taking };
  const sockets = [await openPageSocket(sources, options.pageSocket), await openControlSocket(sources)];
  return { lock, taking, sockets: sockets.filter((socket) => socket !== null) };
}
