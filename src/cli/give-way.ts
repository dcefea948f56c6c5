import { constants, getPriority, setPriority } from "node:os";

/**
 * Lets everything else on the machine go first, the app that serves meanwhile above all: this process and what it
 * starts run at nice 10 from here on. That leaves them about a tenth of a core where others want all of it, so that the
 * fix of an app that burns every core still comes through.
 */
export function giveWay(): void {
  // Somebody may have been nicer: to take that back is not allowed, and not meant.
  setPriority(Math.max(getPriority(), constants.priority.PRIORITY_BELOW_NORMAL));
}
