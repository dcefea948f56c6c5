import type { ControlContext } from "./control/context.ts";
import { openControl } from "./control/control.ts";
import type { Door } from "./control/door.ts";
import type { CatchUp } from "./deployments/catch-up.ts";
import { keepTrying } from "./deployments/keep-trying.ts";
import type { Queue } from "./deployments/queue.ts";
import type { SecretUses } from "./deployments/secret-uses.ts";
import { isSystemError } from "./platform/shortage.ts";
import { becomeRunner, type RunnerLock } from "./runner/runner-lock.ts";

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
