import type { Container } from "../../platform/docker/container.ts";
import type { RolloutService } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import type { DrainSummary } from "../proxy/drain.ts";
import { readLiveFiles } from "../proxy/live-file.ts";
import { longestGraceS, switchTraffic, type Traffic, trafficOf } from "../proxy/traffic.ts";
import { outcomeOf, ranOutcome, type ServiceOutcome } from "../report/report.ts";
import { requestRemoval } from "../self-update/request-replacement.ts";
import { abandon, removeOld } from "./remove-old.ts";
import { startBeside } from "./start-beside.ts";
import { verifyAlone, verifyInService } from "./verify.ts";
import { type AllReady, waitAllReady } from "./wait-all-ready.ts";

const firstStart: DrainSummary = { drainedMs: null, downtimeMs: null, reason: null };

/**
 * Replaces the containers `old` of a service without dropping a request: the new ones start beside the old; the
 * traffic moves when they are healthy; the old ones stop when it has moved.
 *
 * @throws ProblemError if the new ones fail: the old ones still serve, and the new ones are removed
 */
export async function rollService(
  rollout: Rollout,
  service: RolloutService,
  old: readonly Container[],
): Promise<ServiceOutcome> {
  const traffic = trafficOf(rollout, service);
  const fresh = await startBeside(rollout, service, old);
  // If it served before, or if the proxy reads a live file for it, ending is a failure, whatever the exit code.
  const mayEnd = service.mayEnd && old.length === 0 && !rollout.liveFilesRead?.has(service.name);
  const { healthyAfterMs, haveEnded } = await provingHealth(rollout, service, fresh, { mayEnd });
  if (haveEnded) return ranOutcome(service, fresh);
  await switchOrAbandon(rollout, service, traffic, old, fresh);
  const hadOld = old.length > 0;
  const moved = hadOld ? await verifyInService(rollout, service, traffic, old, fresh) : firstStart;
  const leaving = notOwn(rollout, service, old);
  // If Caddy does not report that it reads the file, the old containers may have answered the check so far.
  const isProved = traffic.by === "live file" && rollout.liveFilesRead !== null;
  const switchBack = () => switchTraffic(rollout, service, traffic, leaving);
  if (!isProved && leaving.length > 0) await verifyAlone(rollout, service, leaving, fresh, switchBack);
  await removeOld(rollout, service, leaving, longestGraceS(traffic));
  return outcomeOf(service, hadOld ? "rolled" : "started", { old, new: fresh }, { healthyAfterMs, ...moved });
}

/** Hotpush's own old container finishes the deployment that this is part of, and is removed after it is recorded. */
function notOwn(rollout: Rollout, service: RolloutService, old: readonly Container[]): readonly Container[] {
  const { own, report } = rollout;
  const others = old.filter(({ id }) => id !== own?.id);
  if (others.length < old.length) {
    requestRemoval(rollout);
    const text = "is Hotpush itself: the old container finishes this deployment before it leaves";
    report({ event: "note", service: service.name, text });
  }
  return others;
}

async function provingHealth(
  rollout: Rollout,
  service: RolloutService,
  fresh: readonly Container[],
  allowed: { readonly mayEnd: boolean },
): Promise<AllReady> {
  try {
    return await waitAllReady(rollout, service, fresh, allowed);
  } catch (error) {
    await abandon(rollout, service, fresh);
    throw error;
  }
}

/** New containers that a live file names already stay: the next roll-out recovers. */
async function switchOrAbandon(
  rollout: Rollout,
  service: RolloutService,
  traffic: Traffic,
  old: readonly Container[],
  fresh: readonly Container[],
): Promise<void> {
  try {
    await switchTraffic(rollout, service, traffic, fresh);
  } catch (error) {
    await switchTraffic(rollout, service, traffic, old).catch(() => {});
    const named = traffic.by === "live file" ? await readLiveFiles(traffic.directory, service.name) : [];
    if (!fresh.some(({ name }) => named.includes(name))) await abandon(rollout, service, fresh);
    throw error;
  }
}
