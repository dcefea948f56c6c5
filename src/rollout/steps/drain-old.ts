import { setTimeout as sleep } from "node:timers/promises";
import { formatDuration } from "../../config/duration.ts";
import type { Service } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import type { Container } from "../engine/container.ts";
import { type Drained, drain, drainLimits } from "../proxy/drain.ts";
import type { Traffic } from "../proxy/traffic.ts";
import { timed } from "../report/report.ts";

/** A proxy that watches Docker needs a moment to see that the new container is healthy. */
const proxyNoticesMs = 3_000;

/**
 * Waits until no request is under way to `containers`, from which the traffic has gone, as far as the proxy tells.
 *
 * @param signal gives up waiting where the traffic is to go back; a proxy that watches Docker is waited for all the same
 * @returns milliseconds that it took, or null where no request comes through a proxy
 */
export async function drainOld(
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
