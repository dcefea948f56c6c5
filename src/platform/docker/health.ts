import { setTimeout as sleep } from "node:timers/promises";
import { type Container, inspectContainer } from "./container.ts";
import type { Engine } from "./engine.ts";
import { startProbing } from "./health-check.ts";

export type Readiness =
  | { readonly kind: "ready"; readonly hasHealthCheck: boolean }
  | { readonly kind: "ended"; readonly exitCode: number }
  | { readonly kind: "restarting"; readonly restartCount: number }
  | { readonly kind: "unhealthy" }
  | { readonly kind: "late"; readonly waitedMs: number }
  | { readonly kind: "gone" };

const pollMs = 50;

/** A container without a health check counts as ready when it has run this long without a restart. */
const steadyMs = 3_000;

/**
 * Waits until the container is ready, or cannot become ready any more. A restart counts as a failure: a version that
 * crashes and comes back is not healthy, whatever it reports in between.
 */
export async function waitReady(
  engine: Engine,
  id: string,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<Readiness> {
  const startedMs = performance.now();
  const probing = startProbing(engine, id);
  try {
    for (;;) {
      const hasPassed = probing.hasPassed();
      const container = await inspectContainer(engine, id);
      const readiness = readinessOf(container, performance.now() - startedMs, timeoutMs, hasPassed);
      if (readiness) return readiness;
      await sleep(pollMs, undefined, { signal });
    }
  } finally {
    probing.end();
  }
}

/**
 * The readiness of `container` after `waitedMs`, or null while it is undecided.
 *
 * @param hasPassed whether its health check has passed, though Docker may not have run it yet
 */
export function readinessOf(
  container: Container | null,
  waitedMs: number,
  timeoutMs: number,
  hasPassed: boolean = false,
): Readiness | null {
  if (container === null) return { kind: "gone" };
  const { status, health, exitCode, restartCount } = container;
  if (status === "restarting" || restartCount > 0) return { kind: "restarting", restartCount };
  if (status === "exited" || status === "dead" || status === "removing") return { kind: "ended", exitCode };
  if (health === "unhealthy") return { kind: "unhealthy" };
  if (status === "running" && (health === "healthy" || (health === "starting" && hasPassed)))
    return { kind: "ready", hasHealthCheck: true };
  if (status === "running" && health === null && waitedMs >= steadyMs)
    return { kind: "ready", hasHealthCheck: false };
  return waitedMs > timeoutMs ? { kind: "late", waitedMs } : null;
}

/** Whether the container has ended with exit code 0. */
export function hasEndedWell({ status, exitCode }: Container): boolean {
  return status === "exited" && exitCode === 0;
}

/** Whether the container serves now: healthy, or running without a health check. */
export function isServing(container: Container): boolean {
  return container.status === "running" && (container.health === "healthy" || container.health === null);
}

/** Whether a container that was ready still is. Docker itself may not have run its health check yet. */
export function isStillReady({ status, health, restartCount }: Container): boolean {
  return status === "running" && health !== "unhealthy" && restartCount === 0;
}
