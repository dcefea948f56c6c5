import {
  type Container,
  discardContainers,
  listContainers,
  removeContainer,
} from "../platform/docker/container.ts";
import { hasEndedWell, isServing } from "../platform/docker/health.ts";
import { ProblemError } from "../problems.ts";
import type { Service } from "./compose/project.ts";
import type { Rollout } from "./context.ts";
import { checkThroughProxy } from "./proxy/check.ts";
import { drain, drainLimits } from "./proxy/drain.ts";
import { readLiveFiles, switchLiveFiles } from "./proxy/live-file.ts";
import { longestGraceS, type Traffic, trafficOf } from "./proxy/traffic.ts";
import { timed } from "./report/report.ts";

/**
 * Puts right what an earlier roll-out left when it was killed: the live files name what serves, and every other
 * container of the service is gone. Services that are recreated are left to compose, and those without replicas alone;
 * one-shot services that have ended well stay as they are.
 *
 * @returns the containers of the service that stay
 */
export async function heal(rollout: Rollout, service: Service): Promise<readonly Container[]> {
  const containers = await listContainers(rollout.engine, rollout.project.name, service.name);
  const { how } = service.replacement;
  if (how === "recreate" || how === "run-once" || service.replicas === 0) return containers;
  const traffic = trafficOf(rollout, service);
  const named = traffic.by === "live file" ? await readLiveFiles(traffic.directory, service.name) : [];
  // Where no file says which instance of Hotpush is the newer one, it is the one that has the roll-out done.
  const own = containers.find(({ id }) => id === rollout.own?.id);
  const isOwnAlone = own !== undefined && named.length === 0 && service.replicas === 1;
  const sorted = sortOut(containers, isOwnAlone ? [own.name] : named, service.replicas);
  const { live, leftover: found } = await keepProved(rollout, service, traffic, sorted);
  // What does not run may be all that there is: it goes when there is something to put in its place.
  if (live.length === 0) return service.mayEnd ? containers.filter(hasEndedWell) : live;
  const leftover = found.filter(({ id }) => id !== rollout.own?.id);
  const isStale = traffic.by === "live file" && named.join() !== live.map(({ name }) => name).join();
  if (leftover.length === 0 && !isStale) return live;
  const right = () => putRight(rollout, service, traffic, live, leftover);
  await timed(rollout.report, service.name, "heal", right, () => healed(live, leftover));
  return live;
}

/** Removes the containers of a service of which none runs, now that new ones can take their place. */
export async function clearAway({ engine, project, own, report }: Rollout, service: Service): Promise<void> {
  const present = await listContainers(engine, project.name, service.name);
  const leftover = present.filter(({ id }) => id !== own?.id);
  if (leftover.length === 0) return;
  const clear = async () => {
    for (const { id } of leftover) await removeContainer(engine, id);
  };
  const names = namesOf(leftover);
  const told = leftover.every(hasEndedWell) ? `removed ${names}, which had ended` : healed([], leftover);
  await timed(report, service.name, "heal", clear, () => told);
}

interface Sorted {
  readonly live: readonly Container[];
  readonly leftover: readonly Container[];
}

/**
 * Which containers serve and which are left over. Those that the live files name stay while they run, unless none of
 * them is healthy and others are. Where they name nothing that runs, the first ones that serve stay: the lower number is
 * the older container, and the proved one.
 */
export function sortOut(
  containers: readonly Container[],
  named: readonly string[],
  replicas: number,
): Sorted {
  const running = containers.filter(({ status }) => status === "running");
  const byName = named.flatMap((name) => running.filter((container) => container.name === name));
  const isBest = byName.some(isServing) || !running.some(isServing);
  const live = byName.length > 0 && isBest ? byName : firstServing(running, replicas);
  return { live, leftover: containers.filter((container) => !live.includes(container)) };
}

function firstServing(running: readonly Container[], replicas: number): readonly Container[] {
  const serving = running.filter(isServing);
  return (serving.length > 0 ? serving : running).slice(0, replicas);
}

/**
 * A roll-out that was killed between its switch and its check has left a version in service that nobody has proved. It
 * is asked now, while the older containers still run: where it answers badly, they serve again.
 */
async function keepProved(
  rollout: Rollout,
  service: Service,
  traffic: Traffic,
  sorted: Sorted,
): Promise<Sorted> {
  const { live, leftover } = sorted;
  const isOlder = ({ number }: Container) => live.every((container) => number < container.number);
  const older = leftover.filter((container) => isServing(container) && isOlder(container));
  if (traffic.by !== "live file" || live.length === 0 || older.length === 0) return sorted;
  try {
    await checkThroughProxy(rollout, service);
    return sorted;
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    const text = `${error.problem.detail} An earlier roll-out had no time to see that: the old version serves again`;
    rollout.report({ event: "note", service: service.name, text });
    return {
      live: older,
      leftover: [...live, ...leftover.filter((container) => !older.includes(container))],
    };
  }
}

async function putRight(
  rollout: Rollout,
  service: Service,
  traffic: Traffic,
  live: readonly Container[],
  leftover: readonly Container[],
): Promise<void> {
  if (traffic.by === "live file") {
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
  const [kept] = await discardContainers(rollout.engine, leftover, longestGraceS(traffic));
  if (kept === undefined) return;
  // Compose would count it, and start it again instead of a new one.
  const detail = `${kept.container.name}, left by an earlier roll-out, cannot be removed: ${kept.reason} When it is gone (docker rm --force ${kept.container.name}), roll out again.`;
  throw new ProblemError({ code: "docker_refused", detail });
}

function healed(live: readonly Container[], leftover: readonly Container[]): string {
  const surplus = leftover.filter((container) => live.some((one) => isLike(container, one)));
  const others = leftover.filter((container) => !surplus.includes(container));
  return [
    `${namesOf(live) || "nothing"} serves`,
    ...(others.length === 0 ? [] : [`removed ${namesOf(others)}, left by an earlier roll-out`]),
    ...(surplus.length === 0 ? [] : [`removed ${namesOf(surplus)}, more than the compose file asks for`]),
  ].join("; ");
}

/** Of the same version: not what a roll-out has left behind, but one replica too many. */
function isLike(one: Container, other: Container): boolean {
  return isServing(one) && one.image === other.image && one.configHash === other.configHash;
}

function namesOf(containers: readonly Container[]): string {
  return containers.map(({ name }) => name).join(", ");
}
