import { setTimeout as sleep } from "node:timers/promises";
import { recreateCommand } from "../../platform/compose/commands.ts";
import { hasSucceeded, runCompose, startFailure } from "../../platform/compose/run-compose.ts";
import { type Container, listContainers } from "../../platform/docker/container.ts";
import { isServing } from "../../platform/docker/health.ts";
import type { RolloutService } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { checkThroughProxy, patientLimits } from "../proxy/check.ts";
import { outcomeOf, ranOutcome, type ServiceOutcome, timed, unchangedOutcome } from "../report/report.ts";
import { bringBack, readOldContainers } from "./bring-back.ts";
import { explainBadAnswer } from "./verify.ts";
import { waitAllReady } from "./wait-all-ready.ts";

/** Stopping the old one can take its whole stop grace period. */
const recreateTimeoutMs = 300_000;
const watchPollMs = 100;

/**
 * Replaces a service of which two cannot run: stops the old container, then starts the new one, and reports how long
 * the service was down. If the new version does not become ready, the old containers are recreated.
 *
 * @throws ProblemError if the new version is not ready
 */
export async function recreateService(
  rollout: Rollout,
  service: RolloutService,
  old: readonly Container[],
  reason: string,
): Promise<ServiceOutcome> {
  const before = await readOldContainers(rollout, old);
  const watch = watchAbsence(rollout, service);
  try {
    const { fresh, healthyAfterMs, haveEnded } = await recreate(rollout, service, old, reason).catch(
      async (error: unknown) => {
        await bringBack(rollout, service, before, watch.end);
        throw error;
      },
    );
    if (haveEnded) return ranOutcome(service, fresh);
    if (sameContainers(old, fresh)) return unchangedOutcome(service, fresh);
    const wasRunning = old.some(({ status }) => status === "running");
    if (!wasRunning) return outcomeOf(service, "started", { new: fresh }, { healthyAfterMs, reason });
    const seen = { healthyAfterMs, downtimeMs: await watch.end(), reason };
    return outcomeOf(service, "recreated", { old, new: fresh }, seen);
  } finally {
    await watch.end();
  }
}

async function recreate(
  rollout: Rollout,
  service: RolloutService,
  old: readonly Container[],
  reason: string,
) {
  const up = async () => {
    const argv = recreateCommand(rollout.target, service.name);
    const ending = await runCompose(rollout, argv, { timeoutMs: recreateTimeoutMs });
    if (hasSucceeded(ending)) return;
    throw startFailure(service.name, "recreate", ending);
  };
  await timed({ ...rollout, service }, "recreate", up, () => `two cannot run: ${reason}`);
  const fresh = await listContainers(rollout.engine, rollout.project.name, service.name);
  const hasOld = old.some(({ status }) => status === "running");
  const ready = await waitAllReady(rollout, service, fresh, { mayEnd: service.mayEnd && !hasOld });
  // A first start is checked at the end, when the live files are there.
  if (hasOld && !sameContainers(old, fresh)) await checkRecreated(rollout, service, fresh);
  return { fresh, ...ready };
}

async function checkRecreated(
  rollout: Rollout,
  service: RolloutService,
  fresh: readonly Container[],
): Promise<void> {
  try {
    await checkThroughProxy(rollout, service, patientLimits);
  } catch (error) {
    throw await explainBadAnswer(rollout, fresh, error);
  }
}

/** Compose decides whether something changed. */
function sameContainers(old: readonly Container[], fresh: readonly Container[]): boolean {
  const ids = (containers: readonly Container[]) => containers.map(({ id }) => id).join();
  return ids(old) === ids(fresh);
}

/** Adds up the time in which no container of the service served; polls ten times a second. */
function watchAbsence(
  { engine, project }: Rollout,
  service: RolloutService,
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
