import { writeFileSync } from "node:fs";
import { constants, getPriority, setPriority } from "node:os";

/**
 * Lowers the priority of this process, and of what it starts from now on, to nice 10. If other processes want all of a
 * core, a tenth of it is left: enough for the fix of an app that burns every core. If it is not allowed, nothing changes.
 */
export function lowerPriority(): void {
  try {
    // Somebody may have set a lower one: raising it again is not allowed, and not meant.
    setPriority(Math.max(getPriority(), constants.priority.PRIORITY_BELOW_NORMAL));
  } catch {
    // A courtesy, which a sandbox may forbid (SystemCallFilter=~@resources).
  }
}

/**
 * Gives the session of `pid` the nice value of this process. A child inherits that value, but if the kernel shares the
 * cores out by session, it counts only among the processes of one session: see sched(7), "The autogroup feature". Without
 * that feature, and if the process has exited, nothing changes.
 */
export function lowerSessionPriority(pid: number): void {
  const nice = getPriority();
  if (nice <= 0) return;
  try {
    writeFileSync(`/proc/${pid}/autogroup`, String(nice));
  } catch {
    // A courtesy too.
  }
}
