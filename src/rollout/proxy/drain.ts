import { setTimeout as sleep } from "node:timers/promises";
import { formatDuration } from "../../config/duration.ts";
import type { Containers, LiveDirectory, ServiceRollout } from "../context.ts";
import { type ServiceOutcome, timed } from "../report/report.ts";
import { requestsInFlight } from "./caddy.ts";

/** A proxy that watches Docker needs a moment to see that the new container is healthy. */
const proxyNoticesMs = 3_000;

/** What the closing table shows for a service whose traffic has moved: only what the proxy reported. */
export type DrainSummary = Pick<ServiceOutcome, "drainedMs" | "downtimeMs" | "reason">;

/**
 * Waits until the proxy reports no request to `containers`, which get no new ones any more.
 *
 * @param signal ends the wait if the traffic goes back; the wait for a proxy that watches Docker is not ended
 */
export async function drainOld(
  on: ServiceRollout,
  containers: Containers,
  signal?: AbortSignal,
): Promise<DrainSummary> {
  const { traffic, service } = on;
  if (traffic.by === "nobody") return { drainedMs: null, ...unknown("not behind the proxy") };
  if (traffic.by === "watching proxy") {
    const wait = () => sleep(proxyNoticesMs);
    const { durationMs } = await timed(on, "drain", wait, "the proxy has seen the new container");
    return { drainedMs: durationMs, ...unknown("not measured: the proxy watches Docker") };
  }
  const names = containers.map(({ name }) => name);
  const work = () =>
    drain(traffic.directory, service.name, names, drainLimits(service.drainTimeoutMs), signal);
  const { durationMs, result } = await timed(on, "drain", work, (drained) => drainText(drained, names));
  return { drainedMs: durationMs, ...seenAtProxy(result) };
}

function unknown(reason: string): Pick<ServiceOutcome, "downtimeMs" | "reason"> {
  return { downtimeMs: null, reason };
}

function seenAtProxy(drained: Drained): Pick<ServiceOutcome, "downtimeMs" | "reason"> {
  if (drained.kind === "blind") return unknown("not measured: Caddy did not count the requests");
  const open = drained.kind === "timed_out" ? `; ${drained.inFlight} requests were open at the limit` : "";
  return { downtimeMs: 0, reason: `at the proxy${open}` };
}

const blindness = {
  "no answer": "Caddy did not answer on admin.sock in the live directory",
  "no names":
    "Caddy does not report which containers some of its requests go to (before 2.11.2, all of them)",
};

function drainText(drained: Drained, names: readonly string[]): string {
  if (drained.kind === "drained") return `no request is left in ${names.join(", ")}`;
  if (drained.kind === "given_up") return `${names.join(", ")} not drained: the requests go back there`;
  if (drained.kind === "blind") {
    return `${blindness[drained.why]}: waited ${formatDuration(drained.waitedMs)} instead`;
  }
  return `${drained.inFlight} requests were still under way at the limit`;
}

export interface DrainLimits {
  /**
   * Caddy chooses the upstream a moment before it counts the request: a count of zero is believed only after this
   * time, and if the next one is zero too.
   */
  readonly settleMs: number;
  readonly pollMs: number;
  readonly timeoutMs: number;
  /** The wait if Caddy does not report which container requests go to: as long as the longest request. */
  readonly blindMs: number;
}

/** How long the requests and streams of an old container may take to end, without a label. */
export const defaultDrainTimeoutMs = 30_000;
const longestRequestMs = 10_000;

/** The limits of a drain, from the label `hotpush.drain-timeout` in milliseconds; null without the label. */
export function drainLimits(labelMs: number | null): DrainLimits {
  const [timeoutMs, blindMs] = [labelMs ?? defaultDrainTimeoutMs, labelMs ?? longestRequestMs];
  return { settleMs: 200, pollMs: 50, timeoutMs, blindMs };
}

export type Drained =
  | { readonly kind: "drained" }
  | { readonly kind: "timed_out"; readonly inFlight: number }
  | { readonly kind: "blind"; readonly why: "no answer" | "no names"; readonly waitedMs: number }
  | { readonly kind: "given_up" };

/**
 * Waits until the proxy has no request in flight to `containers` of `service`, which it has been switched away from. Never fails:
 * the result says if the limit was reached, if Caddy does not report, or if `signal` was aborted.
 */
export async function drain(
  live: LiveDirectory,
  service: string,
  containers: readonly string[],
  limits: DrainLimits,
  signal?: AbortSignal,
): Promise<Drained> {
  try {
    const drained = await countDown(live, service, containers, limits, signal);
    return signal?.aborted ? { kind: "given_up" } : drained;
  } catch (error) {
    if (signal?.aborted) return { kind: "given_up" };
    throw error;
  }
}

async function countDown(
  live: LiveDirectory,
  service: string,
  containers: readonly string[],
  { settleMs, pollMs, timeoutMs, blindMs }: DrainLimits,
  signal?: AbortSignal,
): Promise<Drained> {
  const wait = (ms: number) => sleep(ms, undefined, signal ? { signal } : {});
  await wait(settleMs);
  const deadlineMs = performance.now() + timeoutMs;
  let unnamedSinceMs: number | null = null;
  let wasIdle = false;
  for (;;) {
    const inFlight = await requestsInFlight(live, service, containers);
    if (inFlight === null) {
      await wait(blindMs);
      return { kind: "blind", why: "no answer", waitedMs: blindMs };
    }
    const { count, unnamed } = inFlight;
    const isIdle = count === 0 && unnamed === 0;
    if (isIdle && wasIdle) return { kind: "drained" };
    wasIdle = isIdle;
    const nowMs = performance.now();
    // A request that arrives while Caddy counts may be in only one of the numbers. The next poll sees both.
    unnamedSinceMs = count === 0 ? (unnamedSinceMs ?? nowMs) : null;
    if (unnamedSinceMs !== null && nowMs - unnamedSinceMs > blindMs)
      return { kind: "blind", why: "no names", waitedMs: blindMs };
    if (count > 0 && nowMs > deadlineMs) return { kind: "timed_out", inFlight: count };
    await wait(pollMs);
  }
}
