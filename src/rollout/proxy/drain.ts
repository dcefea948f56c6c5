import { setTimeout as sleep } from "node:timers/promises";
import { formatDuration } from "../../config/duration.ts";
import type { Container } from "../../platform/docker/container.ts";
import type { Service } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { type ServiceOutcome, timed } from "../report/report.ts";
import { requestsInFlight } from "./caddy.ts";
import type { Traffic } from "./traffic.ts";

/** A proxy that watches Docker needs a moment to see that the new container is healthy. */
const proxyNoticesMs = 3_000;

/** What the closing table says of a service whose traffic has moved: only what the proxy was seen to do. */
export type Moved = Pick<ServiceOutcome, "drainedMs" | "downtimeMs" | "reason">;

/**
 * Waits until no request is under way to `containers`, from which the traffic has gone, as far as the proxy tells.
 *
 * @param signal gives up waiting where the traffic is to go back; a proxy that watches Docker is waited for all the same
 * @returns what was seen of the requests
 */
export async function drainOld(
  { report }: Rollout,
  service: Service,
  traffic: Traffic,
  containers: readonly Container[],
  signal?: AbortSignal,
): Promise<Moved> {
  if (traffic.by === "nobody") return { drainedMs: null, ...unknown("not behind the proxy") };
  if (traffic.by === "watching proxy") {
    const wait = () => sleep(proxyNoticesMs);
    const { durationMs } = await timed(
      report,
      service.name,
      "drain",
      wait,
      () => "the proxy has seen the new container",
    );
    return { drainedMs: durationMs, ...unknown("not measured: the proxy watches Docker") };
  }
  const names = containers.map(({ name }) => name);
  const { durationMs, result } = await timed(
    report,
    service.name,
    "drain",
    () => drain(traffic.directory, names, drainLimits(service.drainTimeoutMs), signal),
    (drained) => told(drained, names),
  );
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
  "no names": "Caddy does not tell to which container some of its requests go (before 2.11.2, all of them)",
};

function told(drained: Drained, names: readonly string[]): string {
  if (drained.kind === "drained") return `no request is left in ${names.join(", ")}`;
  if (drained.kind === "given_up") return `${names.join(", ")} not drained: the requests go back there`;
  if (drained.kind === "blind") {
    return `${blindness[drained.why]}: waited ${formatDuration(drained.waitedMs)} instead`;
  }
  return `${drained.inFlight} requests were still under way at the limit`;
}

export interface DrainLimits {
  /** Caddy chooses the upstream a moment before it counts the request: nobody is counted out before this has passed. */
  readonly settleMs: number;
  readonly pollMs: number;
  readonly timeoutMs: number;
  /** Waited at most where Caddy does not tell to which container requests go: as long as the longest request. */
  readonly blindMs: number;
}

/** How long the requests and streams of an old container may take to end, where no label says. */
export const defaultDrainTimeoutMs = 30_000;
const longestRequestMs = 10_000;

/** The limits of a drain, with the milliseconds of the label `hotpush.drain-timeout`; null: there is none. */
export function drainLimits(labelMs: number | null): DrainLimits {
  const [timeoutMs, blindMs] = [labelMs ?? defaultDrainTimeoutMs, labelMs ?? longestRequestMs];
  return { settleMs: 500, pollMs: 100, timeoutMs, blindMs };
}

export type Drained =
  | { readonly kind: "drained" }
  | { readonly kind: "timed_out"; readonly inFlight: number }
  | { readonly kind: "blind"; readonly why: "no answer" | "no names"; readonly waitedMs: number }
  | { readonly kind: "given_up" };

/**
 * Waits until the proxy has no request under way to `containers`, which it has been switched away from. Never fails:
 * after the limit, where Caddy does not tell, or when `signal` is aborted, it says so.
 */
export async function drain(
  directory: string,
  containers: readonly string[],
  limits: DrainLimits,
  signal?: AbortSignal,
): Promise<Drained> {
  try {
    const drained = await countDown(directory, containers, limits, signal);
    return signal?.aborted ? { kind: "given_up" } : drained;
  } catch (error) {
    if (signal?.aborted) return { kind: "given_up" };
    throw error;
  }
}

async function countDown(
  directory: string,
  containers: readonly string[],
  { settleMs, pollMs, timeoutMs, blindMs }: DrainLimits,
  signal?: AbortSignal,
): Promise<Drained> {
  const wait = (ms: number) => sleep(ms, undefined, signal ? { signal } : {});
  await wait(settleMs);
  const deadlineMs = performance.now() + timeoutMs;
  let unnamedSinceMs: number | null = null;
  for (;;) {
    const inFlight = await requestsInFlight(directory, containers);
    if (inFlight === null) {
      await wait(blindMs);
      return { kind: "blind", why: "no answer", waitedMs: blindMs };
    }
    const { count, unnamed } = inFlight;
    if (count === 0 && unnamed === 0) return { kind: "drained" };
    const nowMs = performance.now();
    // A request that comes while Caddy counts may be in one number and not in the other: that is over at the next look.
    unnamedSinceMs = count === 0 ? (unnamedSinceMs ?? nowMs) : null;
    if (unnamedSinceMs !== null && nowMs - unnamedSinceMs > blindMs)
      return { kind: "blind", why: "no names", waitedMs: blindMs };
    if (count > 0 && nowMs > deadlineMs) return { kind: "timed_out", inFlight: count };
    await wait(pollMs);
  }
}
