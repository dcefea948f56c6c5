import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import type { ControlContext } from "./control/context.ts";
import { openControl } from "./control/control.ts";
import type { Door } from "./control/door.ts";
import type { CatchUp } from "./deployments/catch-up.ts";
import { keepTrying } from "./deployments/keep-trying.ts";
import type { Queue } from "./deployments/queue.ts";
import type { SecretUses } from "./deployments/secret-uses.ts";
import { flock } from "./platform/file-lock.ts";
import { isSystemError } from "./platform/shortage.ts";

export interface TakeOver extends Omit<ControlContext, "queue" | "catchUp" | "secretUses"> {
  readonly queue: Queue;
  readonly catchUp: CatchUp;
  readonly secretUses: SecretUses;
  readonly stopping: AbortSignal;
}

/** What only one instance has: the right to run deployments, and the door for commands, where it could be opened. */
export interface Taken {
  readonly lock: RunnerLock;
  readonly door: Door | null;
}

/** Waits for its turn to run deployments, and to answer commands, where several instances share the state directory. */
export async function takeOver(options: TakeOver): Promise<Taken | null> {
  const { statePath, queue, catchUp, secretUses, stopping, log } = options;
  const text = "Another instance runs the deployments; this one records";
  const onWait = () => log.info({ event: "runner.waiting" }, text);
  const what = "This instance cannot find out whether it is the one to run deployments";
  const become = () => becomeRunner(statePath, { signal: stopping, onWait });
  const lock = await keepTrying(become, { what, canHeal: isSystemError, signal: stopping, log });
  if (lock === null) return null;
  queue.takeOver();
  catchUp.start();
  secretUses.begin();
  return { lock, door: await openControl(options) };
}

/** The right to run deployments, held by one of the instances that share a state directory. */
export interface RunnerLock {
  readonly release: () => void;
}

/**
 * Waits until this instance is the one that runs deployments. The kernel gives the lock up when its holder dies,
 * however it dies, so it is never stale.
 *
 * @param options.onWait called where another instance has it now
 * @returns null where `signal` was aborted first
 */
export async function becomeRunner(
  statePath: string,
  { signal, onWait }: { signal: AbortSignal; onWait: () => void },
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
