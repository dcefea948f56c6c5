import { type Container, discardContainers, namesOf, removeContainer } from "#platform/docker/containers";
import { hasEndedWell, isServing, withOwnHealth } from "#platform/docker/health";
import { ProblemError } from "#problems";
import { type Containers, containersOf, longestGraceS, type ServiceRollout } from "./context.ts";
import { note, timed } from "./report.ts";
import { checkThroughProxy, drain, drainLimits, namesReceiving, switchLiveFiles } from "./switch-traffic.ts";

/**
 * Cleans up after an earlier roll-out that was killed: makes the live files name the containers that serve, and
 * removes all others of the service. Leaves alone services that compose recreates, services without replicas, and
 * one-shot services that succeeded.
 *
 * @returns the containers of the service that stay
 */
export async function recoverService(on: ServiceRollout): Promise<Containers> {
  const { service, traffic } = on;
  const containers = await withOwnHealth(on.engine, await containersOf(on));
  const { how } = service.replacement;
  if (how === "recreate" || how === "run-once" || service.replicas === 0) return containers;
  const named = await namesReceiving(on);
  const sorted = sortContainers(containers, named, service.replicas);
  const { live, leftover } = await keepProved(on, sorted);
  // Stopped containers may be all there is: they are removed only when something can take their place.
  if (live.length === 0) return service.mayEnd ? containers.filter(hasEndedWell) : live;
  const isStale = traffic.by === "live file" && named.join() !== live.map(({ name }) => name).join();
  if (leftover.length > 0 || isStale)
    await timed(on, "recover", () => putRight(on, live, leftover), healed(live, leftover));
  return live;
}

/** Removes the containers of a service that is down, now that new ones can take their place. */
export async function removeLeftovers(on: ServiceRollout): Promise<void> {
  const leftover = await containersOf(on);
  if (leftover.length === 0) return;
  const clear = async () => {
    for (const { id } of leftover) await removeContainer(on.engine, id);
  };
  const isOver = leftover.every(hasEndedWell);
  const text = isOver ? `removed ${namesOf(leftover)}, which had ended` : healed([], leftover);
  await timed(on, "recover", clear, text);
}

interface Sorted {
  readonly live: Containers;
  readonly leftover: Containers;
}

/**
 * Separates the containers that serve from the leftovers. Running containers that the live files name stay, unless
 * none of them is healthy and another one is. If the files name nothing that runs, the first serving ones stay: lower
 * numbers are older, and verified.
 */
export function sortContainers(containers: Containers, named: readonly string[], replicas: number): Sorted {
  const running = containers.filter(({ status }) => status === "running");
  const byName = named.flatMap((name) => running.filter((container) => container.name === name));
  const isBest = byName.some(isServing) || !running.some(isServing);
  const live = byName.length > 0 && isBest ? byName : firstServing(running, replicas);
  return { live, leftover: containers.filter((container) => !live.includes(container)) };
}

function firstServing(running: Containers, replicas: number): Containers {
  const serving = running.filter(isServing);
  return (serving.length > 0 ? serving : running).slice(0, replicas);
}

/**
 * A roll-out that was killed between its switch and its check leaves an unverified version in service. It is checked
 * now, while the older containers still run. If the check fails, those serve again.
 */
async function keepProved(on: ServiceRollout, sorted: Sorted): Promise<Sorted> {
  const { live, leftover } = sorted;
  const isOlder = ({ number }: Container) => live.every((container) => number < container.number);
  const older = leftover.filter((container) => isServing(container) && isOlder(container));
  if (on.traffic.by !== "live file" || live.length === 0 || older.length === 0) return sorted;
  try {
    await checkThroughProxy(on);
    return sorted;
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    const reason = "An earlier roll-out had no time to see that: the old version serves again";
    note(on, `${error.problem.detail} ${reason}`);
    return { live: older, leftover: [...live, ...leftover.filter((one) => !older.includes(one))] };
  }
}

async function putRight(on: ServiceRollout, live: Containers, leftover: Containers): Promise<void> {
  const { traffic, service } = on;
  const names = (containers: Containers) => containers.map(({ name }) => name);
  if (traffic.by === "live file") {
    await switchLiveFiles(traffic.directory.path, service.name, names(live));
    const running = names(leftover.filter(({ status }) => status === "running"));
    if (running.length > 0)
      await drain(traffic.directory, service.name, running, drainLimits(service.drainTimeoutMs));
  }
  const [kept] = await discardContainers(on.engine, leftover, longestGraceS(traffic));
  if (kept === undefined) return;
  // Compose would count it as a replica, and start it instead of a new one.
  const { name } = kept.container;
  const detail = `${name}, left by an earlier roll-out, cannot be removed: ${kept.reason} When it is gone (docker rm --force ${name}), roll out again.`;
  throw new ProblemError({ code: "docker_refused", detail });
}

function healed(live: Containers, leftover: Containers): string {
  const removed = leftover.length === 0 ? "" : `; removed ${namesOf(leftover)}, left by an earlier roll-out`;
  return `${namesOf(live) || "nothing"} serves${removed}`;
}
