import { constants, getPriority, setPriority } from "node:os";

/**
 * Lets what else runs beside it go first: this thread and what it starts run at nice 10 from here on. Where others want
 * all of a core that leaves a tenth of it, so that the fix of an app that burns every core still comes through. Where
 * it is not allowed, the roll-out does without.
 */
export function giveWay(): void {
  try {
    // Somebody may have been nicer: to take that back is not allowed, and not meant.
    setPriority(Math.max(getPriority(), constants.priority.PRIORITY_BELOW_NORMAL));
  } catch {
    // A courtesy, which a sandbox may forbid (SystemCallFilter=~@resources).
  }
}
