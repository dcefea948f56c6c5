import {
  discardContainers,
  inspectContainer,
  namesOf,
  removeContainer,
} from "../../platform/docker/container.ts";
import { ProblemError } from "../../problems.ts";
import { type Containers, containersOf, type ServiceRollout, type Traffic } from "../context.ts";
import { drainOld } from "../proxy/drain.ts";
import { namesReceiving, switchLiveFiles } from "../proxy/live-file.ts";
import { outcomeOf, type ServiceOutcome, timed, unchangedOutcome } from "../report/report.ts";

/** A drained container has no requests left: it gets this long to exit, not its whole stop grace period. */
const drainedGraceS = 10;

/**
 * The most seconds between SIGTERM and SIGKILL, even if a container's own stop grace period is longer. A container
 * that was not drained may be in the middle of its work, or still get requests from a proxy that watches Docker.
 */
export function longestGraceS({ by }: Traffic): number {
  return by === "live file" ? drainedGraceS : Number.POSITIVE_INFINITY;
}

/**
 * Stops and removes old containers that get no more requests. The new ones are verified and serve by now: a stopped
 * container that cannot be removed is reported, and left to the next roll-out.
 *
 * @throws ProblemError `docker_refused` if one keeps running
 */
export async function removeOld(on: ServiceRollout, containers: Containers): Promise<void> {
  if (containers.length === 0) return;
  const stop = async () => {
    const kept = await discardContainers(on.engine, containers, longestGraceS(on.traffic));
    for (const { container, reason } of kept) {
      if ((await inspectContainer(on.engine, container.id))?.status !== "running") continue;
      const detail = `${container.name} cannot be stopped, and runs beside the new version: ${reason}`;
      throw new ProblemError({ code: "docker_refused", detail });
    }
    return kept.map(
      ({ container, reason }) =>
        `${container.name} has stopped and could not be removed, the next roll-out tries again: ${reason}`,
    );
  };
  await timed(on, "stop", stop, (kept) => kept.join("; ") || `${namesOf(containers)} stopped and removed`);
}

/** Removes new containers that will not serve. The next roll-out removes what cannot be removed now. */
export async function abandon(on: ServiceRollout, containers: Containers): Promise<void> {
  if (containers.length === 0) return;
  const names = namesOf(containers);
  const remove = () => Promise.allSettled(containers.map(({ id }) => removeContainer(on.engine, id)));
  await timed(on, "abandon", remove, (results) =>
    results.every(({ status }) => status === "fulfilled")
      ? `${names} removed`
      : `${names} could not be removed; the next roll-out will`,
  );
}

/** Never resolves (RFC 2606), so the proxy refuses new requests while the old container finishes its own. */
const nobody = "nobody.invalid";

/**
 * Stops and removes the containers of a service that has no replicas any more (`deploy.replicas: 0`), as compose
 * does. If the proxy sends requests to them, it stops that first, and lets those in flight end.
 *
 * @throws ProblemError `docker_refused` if one keeps running
 */
export async function removeService(asked: ServiceRollout): Promise<ServiceOutcome> {
  const { service } = asked;
  const leaving = await containersOf(asked);
  if (leaving.length === 0) return unchangedOutcome(service, leaving);
  const on = await withCurrentTraffic(asked);
  const drainedMs = await endTraffic(on, leaving);
  await removeOld(on, leaving);
  return outcomeOf(service, "removed", { old: leaving }, { drainedMs, reason: "no replicas" });
}

/** A live file counts only if a roll-out has written it. */
async function withCurrentTraffic(on: ServiceRollout): Promise<ServiceRollout> {
  if (on.traffic.by !== "live file" || (await namesReceiving(on)).length > 0) return on;
  return { ...on, traffic: { by: "nobody" } };
}

async function endTraffic(on: ServiceRollout, leaving: Containers): Promise<number | null> {
  const { traffic, service } = on;
  if (traffic.by !== "live file") return null;
  const write = () => switchLiveFiles(traffic.directory.path, service.name, [nobody]);
  await timed(on, "switch", write, "it has no replicas any more: the proxy refuses its requests from now on");
  const running = leaving.filter(({ status }) => status === "running");
  return (await drainOld(on, running)).drainedMs;
}
