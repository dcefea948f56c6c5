import { type Container, inspectContainer, namesOf, stopContainer } from "../../platform/docker/container.ts";
import { diagnose } from "../../platform/docker/diagnosis.ts";
import { isServing, waitReady } from "../../platform/docker/health.ts";
import { ProblemError } from "../../problems.ts";
import type { RolloutService } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { checkThroughProxy } from "../proxy/check.ts";
import { type DrainSummary, drainOld } from "../proxy/drain.ts";
import { switchTraffic, type Traffic } from "../proxy/traffic.ts";
import { timed } from "../report/report.ts";
import { abandon } from "./remove-old.ts";

/**
 * With the traffic on the new containers, runs the check through the proxy while the old ones drain, and looks at the
 * new ones once more. The check runs only if a live file has moved the traffic: otherwise the old ones may answer it.
 * The old ones still run, so going back is one more switch. (After a first start there is nothing to go back to, and
 * the proxy itself may not run yet: its check comes when all services have started.)
 *
 * @returns what was seen of the requests to the old ones
 * @throws ProblemError if the new ones fail; the old ones serve again, and the new ones are removed
 */
export async function verifyInService(
  rollout: Rollout,
  service: RolloutService,
  traffic: Traffic,
  old: readonly Container[],
  fresh: readonly Container[],
): Promise<DrainSummary> {
  const draining = new AbortController();
  try {
    const [moved] = await Promise.all([
      drainOld(rollout, service, traffic, old, draining.signal),
      traffic.by === "live file" && checkThroughProxy(rollout, service),
    ]);
    await requireStillServing(rollout, fresh);
    return moved;
  } catch (error) {
    draining.abort();
    await switchTraffic(rollout, service, traffic, old);
    await drainOld(rollout, service, traffic, fresh);
    const explained = await explainBadAnswer(rollout, fresh, error);
    await abandon(rollout, service, fresh);
    throw explained;
  }
}

/** A version can be healthy until its first real request. */
async function requireStillServing({ engine }: Rollout, containers: readonly Container[]): Promise<void> {
  for (const container of containers) {
    const now = await inspectContainer(engine, container.id);
    if (now && isServing(now) && now.restartCount === 0) continue;
    throw await diagnose(engine, container, { kind: "fell" });
  }
}

/**
 * The check if it is unknown whether the proxy reads a live file: the old containers may answer it too, so they are
 * stopped first. If the new ones answer badly, the old ones are started again.
 *
 * @param switchBack sends the traffic to the old ones, as far as a live file directs it
 * @throws ProblemError `proxy_check_failed`; the old ones serve again, and the new ones are removed
 */
export async function verifyAlone(
  rollout: Rollout,
  service: RolloutService,
  old: readonly Container[],
  fresh: readonly Container[],
  switchBack: () => Promise<void>,
): Promise<void> {
  if (service.checkUrl === null) return;
  const { engine, report } = rollout;
  const names = namesOf(old);
  const stop = () => Promise.all(old.map((one) => stopContainer(engine, one, Number.POSITIVE_INFINITY)));
  await timed({ report, service }, "stop", stop, () => `${names} stopped`);
  try {
    await checkThroughProxy(rollout, service);
  } catch (error) {
    const startAgain = () => Promise.all(old.map((one) => start(rollout, service, one)));
    await timed({ report, service }, "roll back", startAgain, () => `${names} started again`);
    await switchBack();
    const explained = await explainBadAnswer(rollout, fresh, error);
    await abandon(rollout, service, fresh);
    throw explained;
  }
}

async function start(
  { engine }: Rollout,
  { healthyTimeoutMs }: RolloutService,
  { id }: Container,
): Promise<void> {
  await engine.post(`/containers/${id}/start`);
  await waitReady(engine, id, healthyTimeoutMs);
}

/** Adds the container's log to a failed check. Returns any other error as it is. */
export async function explainBadAnswer(
  { engine }: Rollout,
  [fresh]: readonly Container[],
  error: unknown,
): Promise<unknown> {
  if (!(error instanceof ProblemError) || error.problem.code !== "proxy_check_failed" || !fresh) return error;
  const { evidence } = (await diagnose(engine, fresh, { kind: "fell" })).problem;
  return new ProblemError({ ...error.problem, ...(evidence === undefined ? {} : { evidence }) }, error);
}
