import { listContainers } from "../../platform/docker/container.ts";
import type { RolloutService } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { drainOld } from "../proxy/drain.ts";
import { readLiveFiles, switchLiveFiles } from "../proxy/live-file.ts";
import { longestGraceS, type Traffic, trafficOf } from "../proxy/traffic.ts";
import { outcomeOf, type ServiceOutcome, timed, unchangedOutcome } from "../report/report.ts";
import { removeOld } from "./remove-old.ts";

/** Never resolves (RFC 2606), so the proxy refuses new requests while the old container finishes its own. */
const nobody = "nobody.invalid";

/**
 * Stops and removes the containers of a service that has no replicas any more (`deploy.replicas: 0`), as compose
 * does. If the proxy sends requests to them, it stops that first, and lets those in flight end. Leaves Hotpush itself
 * alone.
 *
 * @throws ProblemError `docker_refused` if one keeps running
 */
export async function removeService(rollout: Rollout, service: RolloutService): Promise<ServiceOutcome> {
  const { engine, project, own, report } = rollout;
  const containers = await listContainers(engine, project.name, service.name);
  const leaving = containers.filter(({ id }) => id !== own?.id);
  if (leaving.length < containers.length) {
    const text = `is Hotpush itself, which keeps running although it has no replicas any more. To remove it: docker rm --force ${own?.id}`;
    report({ event: "note", service: service.name, text });
  }
  if (leaving.length === 0) return unchangedOutcome(service, containers);
  const traffic = await currentTraffic(rollout, service);
  const running = leaving.filter(({ status }) => status === "running");
  if (traffic.by === "live file") await endTraffic(rollout, service, traffic.directory);
  const moved = traffic.by === "live file" ? await drainOld(rollout, service, traffic, running) : null;
  await removeOld(rollout, service, leaving, longestGraceS(traffic));
  const seen = { drainedMs: moved?.drainedMs ?? null, reason: "no replicas" };
  return outcomeOf(service, "removed", { old: leaving }, seen);
}

/** A live file counts only if a roll-out has written it. */
async function currentTraffic(rollout: Rollout, service: RolloutService): Promise<Traffic> {
  const traffic = trafficOf(rollout, service);
  if (traffic.by !== "live file") return traffic;
  const named = await readLiveFiles(traffic.directory, service.name);
  return named.length > 0 ? traffic : { by: "nobody" };
}

async function endTraffic({ report }: Rollout, service: RolloutService, directory: string): Promise<void> {
  const write = () => switchLiveFiles(directory, service.name, [nobody]);
  const detail = "it has no replicas any more: the proxy refuses its requests from now on";
  await timed({ report, service }, "switch", write, detail);
}
