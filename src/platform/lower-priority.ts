import { writeFileSync } from "node:fs";
import { getPriority } from "node:os";

/**
 * Gives the session of `pid` the nice value of this process. A child inherits that, but where the kernel shares the cores
 * out by session it counts only among the processes of one session: see sched(7), "The autogroup feature". Where there is no
 * such thing, or the process has ended, nothing is done.
 */
export function lowerSessionPriority(pid: number): void {
  const nice = getPriority();
  if (nice <= 0) return;
  try {
    writeFileSync(`/proc/${pid}/autogroup`, String(nice));
  } catch {
    // A courtesy, like the nice value itself (cli/give-way.ts).
  }
}
