import { type Container, inspectContainer } from "#platform/docker/containers";
import { diagnose, isStillReady, waitReady } from "#platform/docker/health";
import { ProblemError } from "#problems";
import type { Containers, ServiceRollout } from "./context.ts";
import { timed } from "./report.ts";
import { type CheckLimits, checkThroughProxy } from "./switch-traffic.ts";

/**
 * Waits until all of `containers` are ready.
 *
 * @param mayEnd whether exit code 0 is acceptable too: the service may be a one-shot one
 * @returns the milliseconds until the last one was ready, and whether all ran to their end instead, with exit code 0
 * @throws ProblemError `container_not_healthy` with the last health output and log lines of the first one that is not
 */
export async function waitAllReady(
  on: ServiceRollout,
  containers: Containers,
  { mayEnd }: { readonly mayEnd: boolean },
) {
  const { engine, service, signal } = on;
  const waitFor = async (container: Container) => {
    const readiness = await waitReady(engine, container.id, service.healthyTimeoutMs, signal);
    if (readiness.kind === "ready") return readiness.hasHealthCheck ? "healthy" : "steady";
    if (mayEnd && readiness.kind === "ended" && readiness.exitCode === 0) return "ended";
    throw await diagnose(engine, container, readiness);
  };
  const areEnded = (states: readonly string[]) =>
    states.length > 0 && states.every((state) => state === "ended");
  const wait = () => Promise.all(containers.map(waitFor));
  const { result, durationMs } = await timed(on, "healthy", wait, (states) => {
    if (areEnded(states)) return "it ran to its end: exit code 0, and no restart policy";
    return states.includes("steady") ? "it has no health check: it ran for 3 s without a restart" : "";
  });
  return { healthyAfterMs: durationMs, haveEnded: areEnded(result) };
}

/** @throws ProblemError `container_not_healthy` if one was restarted, is gone or is no longer healthy */
export async function requireStillServing(
  { engine }: Pick<ServiceRollout, "engine">,
  containers: Containers,
): Promise<void> {
  for (const container of containers) {
    const now = await inspectContainer(engine, container.id);
    if (now && isStillReady(now)) continue;
    throw await diagnose(engine, container, { kind: "fell" });
  }
}

/**
 * Checks the service through the proxy.
 *
 * @throws ProblemError `proxy_check_failed` with the last log lines of the first of the new containers
 */
export async function checkNewVersion(
  on: ServiceRollout,
  [fresh]: Containers,
  limits?: CheckLimits,
): Promise<void> {
  try {
    await checkThroughProxy(on, limits);
  } catch (error) {
    if (!(error instanceof ProblemError) || error.problem.code !== "proxy_check_failed" || !fresh)
      throw error;
    const { evidence = [] } = (await diagnose(on.engine, fresh, { kind: "fell" })).problem;
    throw new ProblemError({ ...error.problem, evidence }, error);
  }
}
