import type { Service } from "./compose/project.ts";
import type { Rollout } from "./context.ts";
import { type Container, listContainers, removeContainer, stopContainer } from "./engine/container.ts";
import { isServing } from "./engine/health.ts";
import { drain, drainLimits } from "./proxy/drain.ts";
import { readLiveFiles, switchLiveFiles } from "./proxy/live-file.ts";
import { type Traffic, trafficOf } from "./proxy/traffic.ts";
import { timed } from "./report/report.ts";

/** SIGKILL comes this long after SIGTERM to a container that no request reaches any more. */
const leftoverGraceS = 10;

/**
 * Puts right what an earlier roll-out left when it was killed: the live files name what serves, and every other
 * container of the service is gone. Services that are recreated are left to compose.
 *
 * @returns the containers of the service that stay
 */
export async function heal(rollout: Rollout, service: Service): Promise<readonly Container[]> {
  const containers = await listContainers(rollout.engine, rollout.project.name, service.name);
  const { how } = service.replacement;
  if (how === "recreate" || how === "run-once") return containers;
  const traffic = trafficOf(rollout, service);
  const named = traffic.by === "live file" ? await readLiveFiles(traffic.directory, service.name) : [];
  // Where no file says which instance of Hotpush is the newer one, it is the one that has the roll-out done.
  const own = containers.find(({ id }) => id === rollout.own?.id);
  const isOwnAlone = own !== undefined && named.length === 0 && service.replicas === 1;
  const { live, leftover: found } = sortOut(containers, isOwnAlone ? [own.name] : named, service.replicas);
  const leftover = found.filter(({ id }) => id !== rollout.own?.id);
  const isStale = traffic.by === "live file" && named.join() !== live.map(({ name }) => name).join();
  if (leftover.length === 0 && (!isStale || live.length === 0)) return live;
  await timed(
    rollout.report,
    service.name,
    "heal",
    () => putRight(rollout, service, traffic, live, leftover),
    () => healed(live, leftover),
  );
  return live;
}

/**
 * Which containers serve and which are left over. Those that the live files name stay while they run. Where they name
 * nothing that runs, the first ones that serve stay: the lower number is the older container, and the proved one.
 */
export function sortOut(
  containers: readonly Container[],
  named: readonly string[],
  replicas: number,
): { readonly live: readonly Container[]; readonly leftover: readonly Container[] } {
  const running = containers.filter(({ status }) => status === "running");
  const byName = named.flatMap((name) => running.filter((container) => container.name === name));
  const live = byName.length > 0 ? byName : firstServing(running, replicas);
  return { live, leftover: containers.filter((container) => !live.includes(container)) };
}

function firstServing(running: readonly Container[], replicas: number): readonly Container[] {
  const serving = running.filter(isServing);
  return (serving.length > 0 ? serving : running).slice(0, replicas);
}

async function putRight(
  rollout: Rollout,
  service: Service,
  traffic: Traffic,
  live: readonly Container[],
  leftover: readonly Container[],
): Promise<void> {
  if (traffic.by === "live file" && live.length > 0) {
    await switchLiveFiles(
      traffic.directory,
      service.name,
      live.map(({ name }) => name),
    );
    const running = leftover.filter(({ status }) => status === "running");
    if (running.length > 0)
      await drain(
        traffic.directory,
        running.map(({ name }) => name),
        drainLimits(service.drainTimeoutMs),
      );
  }
  await Promise.all(
    leftover.map(async (container) => {
      await stopContainer(rollout.engine, container, leftoverGraceS);
      await removeContainer(rollout.engine, container.id);
    }),
  );
}

function healed(live: readonly Container[], leftover: readonly Container[]): string {
  const names = (containers: readonly Container[]) => containers.map(({ name }) => name).join(", ");
  const removed = leftover.length === 0 ? [] : [`removed ${names(leftover)}, left by an earlier roll-out`];
  return [`${names(live) || "nothing"} serves`, ...removed].join("; ");
}
