import { type Container, inspectContainer, namesOf, stopContainer } from "../../platform/docker/container.ts";
import { diagnose } from "../../platform/docker/diagnosis.ts";
import { isStillReady, waitReady } from "../../platform/docker/health.ts";
import { ProblemError } from "../../problems.ts";
import type { Containers, ServiceRollout } from "../context.ts";
import { guardNewVersion } from "../guard/guard.ts";
import { checkThroughProxy } from "../proxy/check.ts";
import { type DrainSummary, drainOld } from "../proxy/drain.ts";
import { switchTraffic } from "../proxy/live-file.ts";
import { timed } from "../report/report.ts";
import type { AccompaniedRollout } from "../side-by-side/company.ts";
import { abandon } from "./remove.ts";

export interface AllReady {
  /** Milliseconds until the last one was ready. */
  readonly healthyAfterMs: number;
  /** Whether all ran to their end instead, with exit code 0. */
  readonly haveEnded: boolean;
}

/**
 * Waits until all of `containers` are ready.
 *
 * @param mayEnd whether exit code 0 is acceptable too: the service may be a one-shot one
 * @throws ProblemError `container_not_healthy` with the last health output and log lines of the first one that is not
 */
export async function waitAllReady(
  on: ServiceRollout,
  containers: Containers,
  { mayEnd }: { readonly mayEnd: boolean },
): Promise<AllReady> {
  const { engine, service, signal } = on;
  const waitFor = async (container: Container): Promise<State> => {
    const readiness = await waitReady(engine, container.id, service.healthyTimeoutMs, signal);
    if (readiness.kind === "ready") return readiness.hasHealthCheck ? "healthy" : "steady";
    if (mayEnd && readiness.kind === "ended" && readiness.exitCode === 0) return "ended";
    throw await diagnose(engine, container, readiness);
  };
  const wait = () => Promise.all(containers.map(waitFor));
  const { result, durationMs } = await timed(on, "healthy", wait, describe);
  return { healthyAfterMs: durationMs, haveEnded: areEnded(result) };
}

type State = "healthy" | "steady" | "ended";

function areEnded(states: readonly State[]): boolean {
  return states.length > 0 && states.every((state) => state === "ended");
}

function describe(states: readonly State[]): string {
  if (areEnded(states)) return "it ran to its end: exit code 0, and no restart policy";
  return states.includes("steady") ? "it has no health check: it ran for 3 s without a restart" : "";
}

/**
 * With the traffic on the new containers, runs the check through the proxy while the old ones drain and the guard watches
 * the new ones, and looks at these once more. The check runs only if a live file has moved the traffic: otherwise the old ones may answer it.
 * The old ones still run, so going back is one more switch. (After a first start there is nothing to go back to, and
 * the proxy itself may not run yet: its check comes when all services have started.)
 *
 * @returns what was seen of the requests to the old ones
 * @throws ProblemError if the new ones fail, or the signal's reason if another service does; the old ones serve again, and the new ones
 * are removed
 */
export async function verifyInService(
  on: AccompaniedRollout,
  old: Containers,
  fresh: Containers,
): Promise<DrainSummary> {
  const draining = new AbortController();
  try {
    const verified = Promise.all([
      drainOld(on, old, draining.signal),
      on.traffic.by === "live file" && checkThroughProxy(on),
      guardNewVersion(on, old, fresh, draining.signal),
    ]);
    const [moved] = await Promise.race([verified, rejectionAt(on.company.failed)]);
    await requireStillServing(on, fresh);
    return moved;
  } catch (error) {
    draining.abort();
    await switchTraffic(on, old);
    await drainOld(on, fresh);
    throw await explainAndAbandon(on, fresh, error);
  }
}

/** The old containers still run when another service fails, so going back with it is one more switch. */
function rejectionAt(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** A version can be healthy until its first real request. */
async function requireStillServing({ engine }: ServiceRollout, containers: Containers): Promise<void> {
  for (const container of containers) {
    const now = await inspectContainer(engine, container.id);
    if (now && isStillReady(now)) continue;
    throw await diagnose(engine, container, { kind: "fell" });
  }
}

/**
 * Runs the check again if Caddy did not report that it reads the live file: the old containers may have answered so
 * far, so they are stopped first. If the new ones answer badly, the old ones are started again.
 *
 * @throws ProblemError `proxy_check_failed`; the old ones serve again, and the new ones are removed
 */
export async function verifyAlone(on: ServiceRollout, old: Containers, fresh: Containers): Promise<void> {
  const { engine, service, traffic, liveFilesRead } = on;
  const isProved = traffic.by === "live file" && liveFilesRead !== null;
  if (isProved || service.checkUrl === null || old.length === 0) return;
  const stop = () => Promise.all(old.map((one) => stopContainer(engine, one, Number.POSITIVE_INFINITY)));
  await timed(on, "stop", stop, `${namesOf(old)} stopped`);
  try {
    await checkThroughProxy(on);
  } catch (error) {
    const startAgain = () => Promise.all(old.map((one) => start(on, one)));
    await timed(on, "roll back", startAgain, `${namesOf(old)} started again`);
    await switchTraffic(on, old);
    throw await explainAndAbandon(on, fresh, error);
  }
}

async function start({ engine, service }: ServiceRollout, { id }: Container): Promise<void> {
  await engine.post(`/containers/${id}/start`);
  await waitReady(engine, id, service.healthyTimeoutMs);
}

async function explainAndAbandon(on: ServiceRollout, fresh: Containers, error: unknown): Promise<unknown> {
  const explained = await explainBadAnswer(on, fresh, error);
  await abandon(on, fresh);
  return explained;
}

/** Adds the container's log to a failed check. Returns any other error as it is. */
export async function explainBadAnswer(
  { engine }: ServiceRollout,
  [fresh]: Containers,
  error: unknown,
): Promise<unknown> {
  if (!(error instanceof ProblemError) || error.problem.code !== "proxy_check_failed" || !fresh) return error;
  const { evidence } = (await diagnose(engine, fresh, { kind: "fell" })).problem;
  return new ProblemError({ ...error.problem, ...(evidence === undefined ? {} : { evidence }) }, error);
}
