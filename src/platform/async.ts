import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "#log";
import { isShortage } from "./run-command.ts";

/**
 * Makes a function that runs works, at most `most` of them at the same time. The others wait, and go on in the order in
 * which they came.
 */
export function atMost(most: number): <Result>(work: () => Promise<Result>) => Promise<Result> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running < most) running += 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running -= 1;
    }
  };
}

/**
 * Looks that come again and again, and never two at a time.
 *
 * @param onFault gets the errors of `look`, which is still called again
 */
export function repeat(
  look: () => Promise<void>,
  { intervalMs, onFault }: { readonly intervalMs: number; readonly onFault: (error: unknown) => void },
) {
  let timer: NodeJS.Timeout | undefined;
  let isLooking = false;

  /** Looks now, unless a look is in progress. */
  function now(): void {
    if (isLooking) return;
    isLooking = true;
    const end = () => {
      isLooking = false;
    };
    look().catch(onFault).finally(end);
  }

  return {
    now,
    /** Looks at every interval from now on; that alone keeps no process alive. */
    start() {
      timer = setInterval(now, intervalMs).unref();
    },
    stop: () => clearInterval(timer),
  };
}

const retryMs = 1_000;

/**
 * Repeats `attempt` every second while the machine is short of what it needs, which can pass by itself.
 *
 * @param options.what for the log: what could not be done
 * @returns the result of `attempt`, or null if `signal` was aborted first
 * @throws any other error of `attempt`
 */
export async function keepTrying<Result>(
  attempt: () => Promise<Result>,
  { what, signal, log }: { readonly what: string; readonly signal: AbortSignal; readonly log: Log },
): Promise<Result | null> {
  while (!signal.aborted) {
    try {
      return await attempt();
    } catch (error) {
      if (!isShortage(error)) throw error;
      log.error({ event: "system.short", err: error }, `${what}; trying again in 1 s`);
      await pause(retryMs, signal);
    }
  }
  return null;
}

/** Waits for `ms` milliseconds, or until `signal` is aborted. Never rejects. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {});
}

/**
 * Looks again and again, and once at least, until nothing is wrong.
 *
 * @param findFault gives what is wrong, or null
 * @returns null; or what is still wrong after `withinMs`
 */
export async function untilRight<Fault>(
  findFault: () => Promise<Fault | null>,
  { withinMs, pauseMs }: { readonly withinMs: number; readonly pauseMs: number },
): Promise<Fault | null> {
  const endMs = performance.now() + withinMs;
  for (;;) {
    const fault = await findFault();
    if (fault === null || performance.now() >= endMs) return fault;
    await sleep(pauseMs);
  }
}

/**
 * Decides whether an event may be logged: at most `most` of a kind in `windowMs`, so that a flood neither fills a disk nor
 * slows down anything else.
 *
 * @param logMore called at the end of the window with the number of events that were not logged, if any
 */
export function createLogThrottle<Kind>(
  most: number,
  windowMs: number,
  logMore: (kind: Kind, count: number) => void,
): (kind: Kind) => boolean {
  const counts = new Map<Kind, number>();

  const endWindow = (kind: Kind) => {
    const more = (counts.get(kind) ?? 0) - most;
    counts.delete(kind);
    if (more > 0) logMore(kind, more);
  };
  return (kind) => {
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    if (count === 1) setTimeout(endWindow, windowMs, kind).unref();
    return count <= most;
  };
}

/** Strangers may ask for the health of a service as often as they like, so the disk is written to only now and then. */
export function checkAtMostEvery(intervalMs: number, check: () => string | null): () => string | null {
  let checkedAtMs = Number.NEGATIVE_INFINITY;
  let fault: string | null = null;
  return () => {
    if (performance.now() - checkedAtMs < intervalMs) return fault;
    fault = check();
    checkedAtMs = performance.now();
    return fault;
  };
}
