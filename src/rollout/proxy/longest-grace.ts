import type { Traffic } from "./traffic.ts";

/** No request is left in a drained container: it may take this long to close, not its whole stop grace period. */
const drainedGraceS = 10;

/**
 * The most seconds between SIGTERM and SIGKILL, where a container's own stop grace period is longer. What was not drained
 * may be in the middle of its work, or still get requests from a proxy that watches Docker.
 */
export function longestGraceS({ by }: Traffic): number {
  return by === "live file" ? drainedGraceS : Number.POSITIVE_INFINITY;
}
