import { setTimeout as sleep } from "node:timers/promises";
import { formatDuration } from "../../config/duration.ts";
import type { Container } from "../../platform/docker/container.ts";
import type { Service } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { type Drained, drain, drainLimits } from "../proxy/drain.ts";
import type { Traffic } from "../proxy/traffic.ts";
import { type ServiceOutcome, timed } from "../report/report.ts";

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
