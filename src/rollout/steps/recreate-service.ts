import { setTimeout as sleep } from "node:timers/promises";
import { recreateCommand } from "../../platform/compose/commands.ts";
import { runCompose, startFailure } from "../../platform/compose/run-compose.ts";
import { isServing } from "../../platform/docker/health.ts";
import { hasSucceeded } from "../../platform/run-command.ts";
import { type Containers, containersOf, type ServiceRollout } from "../context.ts";
import { checkThroughProxy, patientLimits } from "../proxy/check.ts";
import { outcomeOf, ranOutcome, type ServiceOutcome, timed, unchangedOutcome } from "../report/report.ts";
import { bringBack, readOldContainers } from "./bring-back.ts";
import { explainBadAnswer, waitAllReady } from "./verify.ts";

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
  on: ServiceRollout,
  old: Containers,
  reason: string,
): Promise<ServiceOutcome> {
  const before = await readOldContainers(on, old);
  const watch = watchAbsence(on);
  try {
    const { fresh, healthyAfterMs, haveEnded } = await recreate(on, old, reason);
    if (haveEnded) return ranOutcome(on.service, fresh);
    if (sameContainers(old, fresh)) return unchangedOutcome(on.service, fresh);
    if (!hasRunning(old)) return outcomeOf(on.service, "started", { new: fresh }, { healthyAfterMs, reason });
    const seen = { healthyAfterMs, downtimeMs: await watch.end(), reason };
    return outcomeOf(on.service, "recreated", { old, new: fresh }, seen);
  } catch (error) {
    await bringBack(on, before, watch.end);
    throw error;
  } finally {
    await watch.end();
  }
}

async function recreate(on: ServiceRollout, old: Containers, reason: string) {
  const { target, service } = on;
  const up = async () => {
    const argv = recreateCommand(target, service.name);
    const ending = await runCompose(on, argv, { timeoutMs: recreateTimeoutMs });
    if (!hasSucceeded(ending)) throw startFailure(service.name, "recreate", ending);
  };
  await timed(on, "recreate", up, `two cannot run: ${reason}`);
  const fresh = await containersOf(on);
  const ready = await waitAllReady(on, fresh, { mayEnd: service.mayEnd && !hasRunning(old) });
  // A first start is checked at the end, when the live files are there.
  if (hasRunning(old) && !sameContainers(old, fresh)) await checkRecreated(on, fresh);
  return { fresh, ...ready };
}

async function checkRecreated(on: ServiceRollout, fresh: Containers): Promise<void> {
  try {
    await checkThroughProxy(on, patientLimits);
  } catch (error) {
    throw await explainBadAnswer(on, fresh, error);
  }
}

function hasRunning(containers: Containers): boolean {
  return containers.some(({ status }) => status === "running");
}

/** Compose decides whether something changed. */
function sameContainers(old: Containers, fresh: Containers): boolean {
  const ids = (containers: Containers) => containers.map(({ id }) => id).join();
  return ids(old) === ids(fresh);
}

/** Adds up the time in which no container of the service served; polls ten times a second. */
function watchAbsence(on: ServiceRollout): { readonly end: () => Promise<number> } {
  const state = { isWatching: true, absentMs: 0 };
  const watching = (async () => {
    while (state.isWatching) {
      const startedMs = performance.now();
      const serves = (await containersOf(on).catch(() => [])).some(isServing);
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
