import type { Container } from "../../platform/docker/container.ts";
import type { Service } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import type { Moved } from "../proxy/drain.ts";
import { readLiveFiles } from "../proxy/live-file.ts";
import { longestGraceS, switchTraffic, type Traffic, trafficOf } from "../proxy/traffic.ts";
import { ran, type ServiceOutcome } from "../report/report.ts";
import { requestRemoval } from "../self-update/request-replacement.ts";
import { abandon, retire } from "./remove-old.ts";
import { startBeside } from "./start-beside.ts";
import { proveAlone, proveInService } from "./verify.ts";
import { type AllReady, waitAllReady } from "./wait-all-ready.ts";

const firstStart: Moved = { drainedMs: null, downtimeMs: null, reason: null };

/**
 * Replaces the containers `old` of a service by new ones with no request dropped: the new ones start beside the old,
 * and only when they are healthy does the traffic move; only when it has moved do the old ones stop.
 *
 * @throws ProblemError while the old ones still serve, and the new ones are gone
 */
export async function rollService(
  rollout: Rollout,
  service: Service,
  old: readonly Container[],
): Promise<ServiceOutcome> {
  const traffic = trafficOf(rollout, service);
  const fresh = await startBeside(rollout, service, old);
  // One that served before, or that the proxy knows, has failed where it ends, whatever its exit code.
  const mayEnd = service.mayEnd && old.length === 0 && !rollout.liveFilesRead?.has(service.name);
  const { healthyAfterMs, haveEnded } = await provingHealth(rollout, service, fresh, { mayEnd });
  if (haveEnded) return ran(service, fresh);
  await switchOrAbandon(rollout, service, traffic, old, fresh);
  const hadOld = old.length > 0;
  const moved = hadOld ? await proveInService(rollout, service, traffic, old, fresh) : firstStart;
  const leaving = notOwn(rollout, service, old);
  // Where no Caddy says that it reads the file, the check so far may have asked the old ones.
  const isProved = traffic.by === "live file" && rollout.liveFilesRead !== null;
  const switchBack = () => switchTraffic(rollout, service, traffic, leaving);
  if (!isProved && leaving.length > 0) await proveAlone(rollout, service, leaving, fresh, switchBack);
  await retire(rollout, service, leaving, longestGraceS(traffic));
  return {
    service: service.name,
    outcome: hadOld ? "rolled" : "started",
    old: old.map(({ name }) => name),
    new: fresh.map(({ name }) => name),
    healthyAfterMs,
    ...moved,
  };
}

/** Hotpush's own old container finishes the deployment that this is part of; it leaves when that is recorded. */
function notOwn(rollout: Rollout, service: Service, old: readonly Container[]): readonly Container[] {
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
  service: Service,
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

/** New containers that a live file names already stay: the next roll-out heals. */
async function switchOrAbandon(
  rollout: Rollout,
  service: Service,
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
