import { setTimeout as sleep } from "node:timers/promises";
import { recreateCommand } from "../../platform/compose/commands.ts";
import { complaintOf, hasEndedWell, linesOf, runCompose } from "../../platform/compose/run-compose.ts";
import { type Container, listContainers } from "../../platform/docker/container.ts";
import { isServing } from "../../platform/docker/health.ts";
import { ProblemError } from "../../problems.ts";
import type { Service } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { checkThroughProxy, patientLimits } from "../proxy/check.ts";
import { ran, type ServiceOutcome, timed, unchanged } from "../report/report.ts";
import { bringBack, noteBefore } from "./bring-back.ts";
import { explainBadAnswer } from "./verify.ts";
import { waitAllReady } from "./wait-all-ready.ts";

/** Stopping the old one can take its whole stop grace period. */
const recreateTimeoutMs = 300_000;
const watchPollMs = 100;

/**
 * Replaces a service of which two cannot run: the old container goes, then the new one comes. Says for how long the
 * service was away. In place of a new version that does not become ready, the old containers are made again.
 *
 * @throws ProblemError when the new version is not ready
 */
export async function recreateService(
  rollout: Rollout,
  service: Service,
  old: readonly Container[],
  reason: string,
): Promise<ServiceOutcome> {
  const before = await noteBefore(rollout, old);
  const watch = watchAbsence(rollout, service);
  try {
    const { fresh, healthyAfterMs, haveEnded } = await recreate(rollout, service, old, reason).catch(
      async (error: unknown) => {
        await bringBack(rollout, service, before, watch.end);
        throw error;
      },
    );
    if (haveEnded) return ran(service, fresh);
    if (sameContainers(old, fresh)) return unchanged(service, fresh);
    const wasRunning = old.some(({ status }) => status === "running");
    return {
      service: service.name,
      outcome: wasRunning ? "recreated" : "started",
      old: wasRunning ? old.map(({ name }) => name) : [],
      new: fresh.map(({ name }) => name),
      healthyAfterMs,
      drainedMs: null,
      downtimeMs: wasRunning ? await watch.end() : null,
      reason,
    };
  } finally {
    await watch.end();
  }
}

async function recreate(rollout: Rollout, service: Service, old: readonly Container[], reason: string) {
  const up = async () => {
    const argv = recreateCommand(rollout.target, service.name);
    const ending = await runCompose(rollout, argv, { timeoutMs: recreateTimeoutMs });
    if (hasEndedWell(ending)) return;
    throw new ProblemError({
      code: "container_start_failed",
      detail: `${service.name}: ${complaintOf("recreate", ending)}.`,
      evidence: linesOf(ending),
    });
  };
  await timed(rollout.report, service.name, "recreate", up, () => `two cannot run: ${reason}`);
  const fresh = await listContainers(rollout.engine, rollout.project.name, service.name);
  const hasOld = old.some(({ status }) => status === "running");
  const ready = await waitAllReady(rollout, service, fresh, { mayEnd: service.mayEnd && !hasOld });
  // A first start is asked at the end, when the live files are there.
  if (hasOld && !sameContainers(old, fresh)) await checkRecreated(rollout, service, fresh);
  return { fresh, ...ready };
}

async function checkRecreated(
  rollout: Rollout,
  service: Service,
  fresh: readonly Container[],
): Promise<void> {
  try {
    await checkThroughProxy(rollout, service, patientLimits);
  } catch (error) {
    throw await explainBadAnswer(rollout, fresh, error);
  }
}

/** Compose has the last word on whether something changed. */
function sameContainers(old: readonly Container[], fresh: readonly Container[]): boolean {
  const ids = (containers: readonly Container[]) => containers.map(({ id }) => id).join();
  return ids(old) === ids(fresh);
}

/** Adds up the time in which no container of the service served, looking ten times a second. */
function watchAbsence(
  { engine, project }: Rollout,
  service: Service,
): { readonly end: () => Promise<number> } {
  const state = { isWatching: true, absentMs: 0 };
  const watching = (async () => {
    while (state.isWatching) {
      const startedMs = performance.now();
      const containers = await listContainers(engine, project.name, service.name).catch(() => []);
      const serves = containers.some(isServing);
      await sleep(watchPollMs);
      if (!serves) state.absentMs += performance.now() - startedMs;
    }
  })();
  const end = async () => {
    state.isWatching = false;
    await watching;
    return Math.max(watchPollMs, Math.round(state.absentMs));
  };
  return { end };
}
