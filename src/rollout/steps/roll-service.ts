import { setTimeout as sleep } from "node:timers/promises";
import { formatDuration } from "../../config/duration.ts";
import type { Service } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { type Container, inspectContainer } from "../engine/container.ts";
import { diagnose } from "../engine/diagnosis.ts";
import { isServing } from "../engine/health.ts";
import { leaveLater } from "../own-container/replace-own.ts";
import { checkThroughProxy } from "../proxy/check-through-proxy.ts";
import { type Drained, drain, drainLimits } from "../proxy/drain.ts";
import { readLiveFiles, switchLiveFiles } from "../proxy/live-file.ts";
import { type Traffic, trafficOf } from "../proxy/traffic.ts";
import { type ServiceOutcome, timed } from "../report/report.ts";
import { abandon } from "./abandon.ts";
import { explainBadAnswer } from "./explain-bad-answer.ts";
import { proveAlone } from "./prove-alone.ts";
import { retire } from "./retire.ts";
import { startBeside } from "./start-beside.ts";
import { waitAllReady } from "./wait-all-ready.ts";

/** A proxy that watches Docker needs a moment to see that the new container is healthy. */
const proxyNoticesMs = 3_000;

/** No request is left in a drained container: it may take this long to close, not its whole stop grace period. */
const drainedGraceS = 10;

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
  const healthyAfterMs = await provingHealth(rollout, service, fresh);
  await switchOrAbandon(rollout, service, traffic, old, fresh);
  const drainedMs = old.length === 0 ? null : await proveInService(rollout, service, traffic, old, fresh);
  const leaving = notOwn(rollout, service, old);
  // Where no Caddy says that it reads the file, the check so far may have asked the old ones.
  const isProved = traffic.by === "live file" && rollout.liveFilesRead !== null;
  const switchBack = () => switchTraffic(rollout, service, traffic, leaving);
  if (!isProved && leaving.length > 0) await proveAlone(rollout, service, leaving, fresh, switchBack);
  await retire(
    rollout,
    service,
    leaving,
    traffic.by === "live file" ? drainedGraceS : Number.POSITIVE_INFINITY,
  );
  const hadOld = old.length > 0;
  return {
    service: service.name,
    outcome: hadOld ? "rolled" : "started",
    old: old.map(({ name }) => name),
    new: fresh.map(({ name }) => name),
    healthyAfterMs,
    drainedMs,
    downtimeMs: hadOld ? 0 : null,
    reason: null,
  };
}

/** Hotpush's own old container finishes the deployment that this is part of; it leaves when that is recorded. */
function notOwn(rollout: Rollout, service: Service, old: readonly Container[]): readonly Container[] {
  const { own, report } = rollout;
  const others = old.filter(({ id }) => id !== own?.id);
  if (others.length < old.length) {
    leaveLater(rollout);
    const text = "is Hotpush itself: the old container finishes this deployment before it leaves";
    report({ event: "note", service: service.name, text });
  }
  return others;
}

async function provingHealth(
  rollout: Rollout,
  service: Service,
  fresh: readonly Container[],
): Promise<number> {
  try {
    return await waitAllReady(rollout, service, fresh);
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

async function switchTraffic(
  { report }: Rollout,
  service: Service,
  traffic: Traffic,
  containers: readonly Container[],
): Promise<void> {
  if (traffic.by !== "live file" || containers.length === 0) return;
  const names = containers.map(({ name }) => name);
  const write = () => switchLiveFiles(traffic.directory, service.name, names);
  await timed(report, service.name, "switch", write, () => `requests now go to ${names.join(", ")}`);
}

/**
 * With the traffic on the new containers, the check through the proxy while the old ones drain (where a live file has
 * moved the traffic, which is when it says something of the new ones alone), and a last look at them after that. The
 * old ones still run, so going back is one more switch. (On a first start there is nothing to go back to, and the proxy
 * itself may not run yet: its check comes when all services have started.)
 *
 * @returns milliseconds that the drain of the old ones took, or null where nothing is drained
 */
async function proveInService(
  rollout: Rollout,
  service: Service,
  traffic: Traffic,
  old: readonly Container[],
  fresh: readonly Container[],
): Promise<number | null> {
  const draining = new AbortController();
  try {
    const [drainedMs] = await Promise.all([
      drainOld(rollout, service, traffic, old, draining.signal),
      traffic.by === "live file" && checkThroughProxy(rollout, service),
    ]);
    await requireStillServing(rollout, fresh);
    return drainedMs;
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

async function drainOld(
  { report }: Rollout,
  service: Service,
  traffic: Traffic,
  containers: readonly Container[],
  signal?: AbortSignal,
): Promise<number | null> {
  if (traffic.by === "nobody") return null;
  if (traffic.by === "watching proxy") {
    const wait = () => sleep(proxyNoticesMs);
    const { durationMs } = await timed(
      report,
      service.name,
      "drain",
      wait,
      () => "the proxy has seen the new container",
    );
    return durationMs;
  }
  const names = containers.map(({ name }) => name);
  const { durationMs } = await timed(
    report,
    service.name,
    "drain",
    () => drain(traffic.directory, names, drainLimits(service.drainTimeoutMs), signal),
    (drained) => told(drained, names),
  );
  return durationMs;
}

const blindness = {
  "no answer": "Caddy did not answer on admin.sock in the live directory",
  "no names": "this Caddy does not tell to which container its requests go (2.11.2 and newer do)",
};

function told(drained: Drained, names: readonly string[]): string {
  if (drained.kind === "drained") return `no request is left in ${names.join(", ")}`;
  if (drained.kind === "given_up") return `${names.join(", ")} not drained: the requests go back there`;
  if (drained.kind === "blind") {
    return `${blindness[drained.why]}: waited ${formatDuration(drained.waitedMs)} instead`;
  }
  return `${drained.inFlight} requests were still under way at the limit`;
}
