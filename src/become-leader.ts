import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { openControlSocket } from "./control/control-socket.ts";
import type { ControlSources } from "./control/route.ts";
import { keepTrying } from "./deployments/retry.ts";
import type { Taking } from "./inbox/take-pushes.ts";
import { flock } from "./platform/file-lock.ts";
import { isSystemError } from "./platform/run-command.ts";
import type { UnixSocket } from "./platform/unix-socket.ts";

export interface LeaderOptions extends Omit<ControlSources, "taking"> {
  /** Begins to run deployments, and to take pushes from an inbox if that is where they come from. */
  readonly onLeading: () => Taking | null;
  readonly stopping: AbortSignal;
}

/** What only the leader has: the runner lock, the pushes of an inbox, and the control socket, if it could be opened. */
export interface Leadership {
  readonly lock: RunnerLock;
  readonly taking: Taking | null;
  readonly controlSocket: UnixSocket | null;
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
  const lockOnce = () => lockRunner(statePath, { signal: stopping, onWait });
  const lock = await keepTrying(lockOnce, { what, canPass: isSystemError, signal: stopping, log });
  if (lock === null) return null;
  const taking = options.onLeading();
  return { lock, taking, controlSocket: await openControlSocket({ ...options, taking }) };
}

/** The right to run deployments, held by one of the instances that share a state directory. */
export interface RunnerLock {
  readonly release: () => void;
}

/**
 * Waits for the runner lock. The kernel releases it when its holder dies, however it dies, so it is never stale.
 *
 * @param options.onWait called if another instance has it now
 * @returns null if `signal` was aborted first
 */
export async function lockRunner(
  statePath: string,
  { signal, onWait }: { readonly signal: AbortSignal; readonly onWait: () => void },
): Promise<RunnerLock | null> {
  const fd = openSync(join(statePath, "runner.lock"), "a", 0o600);
  try {
    if (!(await flock(fd, { waitS: 0 }))) {
      onWait();
      await flock(fd, { waitS: null, signal });
    }
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  if (signal.aborted) {
    closeSync(fd);
    return null;
  }
  return { release: () => closeSync(fd) };
}
