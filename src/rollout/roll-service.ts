import { availableParallelism } from "node:os";
import { runCompose, scaleUpCommand, startFailure } from "#platform/compose";
import { type Container, inspectImage, listContainers, namesOf, tagImage } from "#platform/docker/containers";
import { hasEndedWell, isServing, withOwnHealth } from "#platform/docker/health";
import { hasSucceeded } from "#platform/run-command";
import { ProblemError } from "#problems";
import type { Containers, Rollout, RunningContainers, ServiceRollout } from "./context.ts";
import {
  type Action,
  anonymousVolume,
  planService,
  type RolloutService,
  refuseChangedNetworks,
} from "./project.ts";
import { endEarlierRun, recreateService, runService } from "./recreate-service.ts";
import { note, outcomeOf, type ServiceOutcome, timed } from "./report.ts";
import { guardNewVersion } from "./requests.ts";
import { containersOf, requireStillServing, stopAndRemove, waitAllReady } from "./service-containers.ts";
import {
  checkThroughProxy,
  drainOld,
  namesReceiving,
  onService,
  switchLiveFiles,
  switchTraffic,
} from "./switch-traffic.ts";

/**
 * Cleans up after an earlier roll-out that was killed: makes the live files name the containers that serve, and
 * removes all others of the service. Leaves alone services that compose recreates, services without replicas, and
 * one-shot services that succeeded.
 *
 * @param present all containers of the service
 * @returns its old version: all, if it is left alone; else those in service or, without any, those that ended well
 */
export async function recoverService(on: ServiceRollout, present: Containers): Promise<Containers> {
  const { service, directedBy } = on;
  const containers = await withOwnHealth(on.engine, present);
  const { how } = service.mode;
  if (how === "recreate" || how === "run-once" || service.replicas === 0) return containers;
  const named = await namesReceiving(on);
  const split = splitContainers(containers, named);
  const { live, leftover } = await keepProved(on, split);
  // Stopped containers may be all there is: they are removed only when something can take their place.
  if (live.length === 0) return service.mayEnd ? containers.filter(hasEndedWell) : live;
  const isStale = directedBy !== null && named.join() !== live.map(({ name }) => name).join();
  if (leftover.length > 0 || isStale) await clearLeftovers(on, live, leftover);
  return live;
}

/**
 * Separates the containers that serve from the leftovers. Running containers that the live files name stay, unless
 * none of them is healthy and another one is. If the files name nothing that runs, the first serving one stays, and those of
 * the same version: lower numbers are older, and verified. Their number may differ from the compose file's, because its build may yet fail.
 */
export function splitContainers(containers: Containers, named: readonly string[]) {
  const running = containers.filter(({ status }) => status === "running");
  const byName = named.flatMap((name) => running.filter((container) => container.name === name));
  const isBest = byName.some(isServing) || !running.some(isServing);
  const serving = running.filter(isServing);
  const [first, ...rest] = serving.length > 0 ? serving : running;
  const isSame = ({ image, configHash }: Container) =>
    image === first?.image && configHash === first.configHash;
  const oldest = first ? [first, ...rest.filter(isSame)] : [];
  const live = byName.length > 0 && isBest ? byName : oldest;
  return { live, leftover: containers.filter((container) => !live.includes(container)) };
}

type Split = Readonly<ReturnType<typeof splitContainers>>;

/**
 * A roll-out that was killed between its switch and its check leaves an unverified version in service. It is checked
 * now, while the older containers still run. If the check fails, those serve again.
 */
async function keepProved(on: ServiceRollout, split: Split): Promise<Split> {
  const { live, leftover } = split;
  const isOlder = ({ number }: Container) => live.every((container) => number < container.number);
  const older = leftover.filter((container) => isServing(container) && isOlder(container));
  if (on.directedBy === null || live.length === 0 || older.length === 0) return split;
  try {
    await checkThroughProxy(on);
    return split;
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    const reason = "An earlier roll-out had no time to see that: the old version serves again";
    note(on, `${error.problem.detail} ${reason}`);
    return { live: older, leftover: [...live, ...leftover.filter((one) => !older.includes(one))] };
  }
}

/**
 * Sends the requests to the containers in service, and removes the others.
 *
 * @throws ProblemError `docker_refused`, with what to do, if one cannot be removed: compose would start it instead of a new one
 */
async function clearLeftovers(on: ServiceRollout, live: Containers, leftover: Containers): Promise<void> {
  const serving = live.length === 0 ? [] : [`${namesOf(live)} serves`];
  const removed = leftover.length === 0 ? [] : [`removed ${namesOf(leftover)}, left by an earlier roll-out`];
  const clear = async () => {
    const names = live.map(({ name }) => name);
    if (on.directedBy !== null) await switchLiveFiles(on.directedBy.path, on.service.name, names);
    const running = leftover.filter(({ status }) => status === "running");
    if (running.length > 0) await drainOld(on, running);
    const [kept] = await stopAndRemove(on, leftover, graceOf(on));
    if (kept === undefined) return;
    const { name } = kept.container;
    const detail = `${name}, left by an earlier roll-out, cannot be removed: ${kept.reason} When it is gone (docker rm --force ${name}), roll out again.`;
    throw new ProblemError({ code: "docker_refused", detail });
  };
  await timed(on, "recover", clear, [...serving, ...removed].join("; "));
}

/** New containers of a service beside its old ones. As long as these are there, it can be undone. */
interface Replacement {
  readonly on: ServiceRollout;
  readonly old: Containers;
  fresh: Containers;
  healthyAfterMs: number | null;
  /** Whether requests may have gone to the new ones. */
  isSwitched: boolean;
  /** Whether it is why the roll-out fails. */
  hasFailed: boolean;
  /** How long the last requests to the old ones took; null until the switch. */
  drained: Promise<number | null> | null;
  /** Aborted if the requests go back. */
  readonly goesBack: AbortController;
}

/** What a roll-out has done so far. */
export interface Progress {
  /** The containers of each service before it. */
  readonly running: RunningContainers;
  /** Of the services that are done. */
  readonly outcomes: ServiceOutcome[];
  readonly replacements: Replacement[];
}

/** More services at once would wait for each other on the processor while they start, and slow down what serves. */
const servicesPerCore = 4;

/** The services in the order in which they are updated: those of a wave at once, after all that they depend on. */
export function wavesOf<Known extends Pick<RolloutService, "name" | "dependsOn">>(
  services: readonly Known[],
  mostAtOnce: number = servicesPerCore * availableParallelism(),
): readonly (readonly Known[])[] {
  const depths = new Map<string, number>();
  for (const { name, dependsOn } of services)
    depths.set(name, 1 + Math.max(0, ...dependsOn.map((one) => depths.get(one) ?? 0)));
  const waves = [...Map.groupBy(services, ({ name }) => depths.get(name) ?? 1)];
  return waves
    .toSorted(([one], [other]) => one - other)
    .flatMap(([, wave]) =>
      wave.flatMap((_, at) => (at % mostAtOnce === 0 ? [wave.slice(at, at + mostAtOnce)] : [])),
    );
}

/**
 * Brings the services of a wave up to date, now that their images are here: first those that are recreated, each alone, because
 * the others may be checked through one of them (the proxy, a database); then the others at once.
 *
 * @throws ProblemError of the service that failed first, when the others have come to their end
 */
export async function updateWave(
  rollout: Rollout,
  wave: readonly RolloutService[],
  { running, outcomes, replacements }: Progress,
): Promise<void> {
  const recreations: (() => Promise<ServiceOutcome>)[] = [];
  const runs: ServiceRollout[] = [];
  const rolls: Replacement[] = [];
  const images = await Promise.all(wave.map(({ image }) => inspectImage(rollout.engine, image)));
  for (const [index, service] of wave.entries()) {
    const on = onService(rollout, service);
    on.signal.throwIfAborted();
    const before = running.get(service.name) ?? [];
    const { action, old } = await planUpdate(on, before, images[index]?.id ?? null);
    if (action.kind === "leave") outcomes.push(outcomeOf(service, "unchanged", { old, new: old }));
    if (action.kind === "recreate") recreations.push(() => recreateService(on, old, action.reason));
    if (action.kind === "run") runs.push(on);
    if (action.kind === "roll") rolls.push({ on, old, ...notStarted, goesBack: new AbortController() });
    if (action.kind === "skip") {
      note(on, "is not run in a roll back: what it changed stays as it is");
      outcomes.push(outcomeOf(service, "skipped", {}));
    }
  }
  for (const recreate of recreations) outcomes.push(await recreate());
  replacements.push(...rolls);
  const starting = startContainers(rollout, rolls);
  starting.catch(() => {}); // Each of the services reports it.
  await together([
    ...runs.map((on) => async () => outcomes.push(await runService(on))),
    ...rolls.map((roll) => async (failed: AbortSignal) => {
      const hasEnded = await replace(roll, starting, failed);
      if (!hasEnded) return;
      outcomes.push(outcomeOf(roll.on.service, "ran", { new: roll.fresh }));
      replacements.splice(replacements.indexOf(roll), 1);
    }),
  ]);
}

/**
 * What to do with a service, and which of its containers that replaces: those that are there now. During a build of minutes, one may
 * have crashed or recovered, or a person may have run `docker compose up`. If nothing runs at this moment, what ran `before`
 * the build counts as running: it is what an undo goes back to.
 */
async function planUpdate(
  on: ServiceRollout,
  before: Containers,
  imageId: string | null,
): Promise<{ action: Exclude<Action, { kind: "start" }>; old: Containers }> {
  const { service } = on;
  const isAwaited = service.mode.how === "run-once";
  const present = isAwaited ? await endEarlierRun(on) : await containersOf(on);
  const old = isAwaited ? present : await recoverService(on, present);
  const configHash = (await on.configHashes).get(service.name);
  const action = planService(on, old, { imageId, configHash });
  const hadServed = (one: Container) =>
    before.some(({ id, status }) => id === one.id && status === "running") &&
    !(service.mayEnd && hasEndedWell(one));
  const asBefore = (one: Container) => (hadServed(one) ? { ...one, status: "running" as const } : one);
  if (action.kind !== "start") return { action, old: old.map(asBefore) };
  const volume = anonymousVolume(service, present);
  if (volume !== null)
    return { action: { kind: "recreate", reason: `anonymous volume ${volume}` }, old: present.map(asBefore) };
  const leftover = present.filter((one) => !hadServed(one));
  if (leftover.length > 0) await clearLeftovers(on, [], leftover);
  return { action: { kind: "roll" }, old: present.filter(hadServed) };
}

const notStarted = { fresh: [], healthyAfterMs: null, isSwitched: false, hasFailed: false, drained: null };

/** Does all `works`, and waits for all. When one fails, the signal that each was given is aborted, and its error is thrown. */
async function together(works: readonly ((failed: AbortSignal) => Promise<unknown>)[]): Promise<void> {
  const failing = new AbortController();
  const failures: unknown[] = [];
  const noteFailure = (error: unknown) => {
    failures.push(error);
    failing.abort();
  };
  await Promise.all(works.map((work) => work(failing.signal).catch(noteFailure)));
  if (failures.length > 0) throw failures[0];
}

const startTimeoutMs = 120_000;

/**
 * Starts new containers of all services beside the old ones with one run of compose.
 *
 * @throws ProblemError `container_start_failed`, `network_changed`
 */
async function startContainers(rollout: Rollout, rolls: readonly Replacement[]): Promise<void> {
  if (rolls.length === 0) return;
  const scales = rolls.map(({ on: { service }, old }) => {
    return { service: service.name, count: old.length + service.replicas };
  });
  const providers = [...new Set(rolls.flatMap(({ on }) => on.service.providers))];
  const networks = rolls.flatMap(({ on, old }) => (old.length > 0 ? on.service.networks : []));
  await refuseChangedNetworks(rollout, networks, scaleUpCommand(rollout.target, scales));
  const argv = scaleUpCommand(rollout.target, scales, providers);
  const ending = await runCompose(rollout, argv, { timeoutMs: startTimeoutMs });
  const names = scales.map(({ service }) => service).join(", ");
  if (!hasSucceeded(ending))
    throw startFailure(scales.length === 1 ? names : `One of ${names}`, "start", ending);
}

/**
 * Replaces the containers of a service without dropping a request: start the new ones beside the old, wait until they are
 * healthy, switch the traffic, check them. The old ones drain meanwhile, and stay until all services have come so far.
 *
 * @param failed aborted when another service fails
 * @returns whether the service ran to its end instead
 */
async function replace(roll: Replacement, starting: Promise<void>, failed: AbortSignal): Promise<boolean> {
  const { on, old } = roll;
  try {
    const fresh = (await timed(on, "start", () => awaitStart(roll, starting), namesOf)).result;
    // If it served before, or if the proxy reads a live file for it, ending is a failure, whatever the exit code.
    const mayEnd = on.service.mayEnd && old.length === 0 && !on.liveFilesRead?.has(on.service.name);
    const signal = AbortSignal.any([on.signal, failed]);
    const ready = await waitAllReady({ ...on, signal }, fresh, mayEnd);
    signal.throwIfAborted();
    roll.healthyAfterMs = ready.healthyAfterMs;
    if (ready.haveEnded) return true;
    roll.isSwitched = true;
    await switchTraffic(on, fresh);
    // After a first start there is nothing to go back to, and the proxy may not run yet: its check comes after all waves.
    if (old.length === 0) return false;
    roll.drained = drainOld(on, old, AbortSignal.any([on.signal, roll.goesBack.signal]));
    roll.drained.catch(() => {}); // It is awaited with the guard.
    await checkThroughProxy({ ...on, signal }, fresh);
    return false;
  } catch (error) {
    roll.hasFailed = !failed.aborted;
    throw error;
  }
}

/** The new containers, known by ids that were not there before: the numbers in their names cannot be predicted. */
async function awaitStart(roll: Replacement, starting: Promise<void>): Promise<Containers> {
  const { on, old } = roll;
  const known = new Set(old.map(({ id }) => id));
  try {
    await starting;
  } finally {
    roll.fresh = (await containersOf(on)).filter(({ id }) => !known.has(id));
  }
  const { name, replicas } = on.service;
  if (roll.fresh.length === replicas) return roll.fresh;
  const detail = `Compose started ${roll.fresh.length} of ${replicas} containers of ${name}.`;
  throw new ProblemError({ code: "container_start_failed", detail });
}

/**
 * With the traffic on the new containers, waits until the old ones are drained and the guard has watched the new ones, and looks
 * at these once more: a version can be healthy until its first real request.
 *
 * @throws ProblemError of the service that failed first
 */
export async function guardReplacements(replacements: readonly Replacement[]): Promise<void> {
  const moved = replacements.filter(({ drained }) => drained !== null);
  await together(
    moved.map((roll) => async (failed) => {
      const { on, old, fresh, drained } = roll;
      try {
        await Promise.all([drained, guardNewVersion(on, old, fresh, failed)]);
        on.signal.throwIfAborted();
        await requireStillServing(on, fresh);
      } catch (error) {
        roll.hasFailed = !failed.aborted;
        for (const { goesBack } of moved) goesBack.abort();
        throw error;
      }
    }),
  );
}

/** Stops and removes the old containers: from here on, only a roll back brings the old version back. */
export async function finishReplacement(roll: Replacement): Promise<ServiceOutcome> {
  const { on, old, fresh, healthyAfterMs, drained } = roll;
  await remove(on, "stop", old, graceOf(on));
  const outcome = old.length === 0 ? "started" : "rolled";
  return outcomeOf(on.service, outcome, { old, new: fresh }, { healthyAfterMs, drainedMs: await drained });
}

/**
 * Stops and removes containers that get no more requests. Others serve by now: one that cannot be removed is reported, and
 * left to the next roll-out.
 */
async function remove(
  on: ServiceRollout,
  step: "stop" | "abandon",
  containers: Containers,
  longestGraceS: number,
): Promise<void> {
  if (containers.length === 0) return;
  await timed(
    on,
    step,
    () => stopAndRemove(on, containers, longestGraceS),
    (kept) => {
      const left = kept.map(
        ({ container, reason }) =>
          `${container.name} could not be removed, the next roll-out tries again: ${reason}`,
      );
      return left.join("; ") || `${namesOf(containers)} stopped and removed`;
    },
  );
}

/**
 * A drained container has no requests left: it gets 10 s to exit. One that was not drained may be in the middle of its work. If the
 * proxy does not say which live files it reads, that could be any.
 */
function graceOf({ directedBy, liveFilesRead, service }: ServiceRollout): number {
  return directedBy !== null && liveFilesRead?.has(service.name) ? 10 : Number.POSITIVE_INFINITY;
}

/**
 * Undoes a roll-out that fails: the old containers of each service serve again, and the new ones are removed, so that the serving
 * versions belong together. The running images get their names back. Services that were recreated stay new, because a database may
 * not go back. Reports what cannot be undone, and never throws.
 */
export async function undo(rollout: Rollout, { running, outcomes, replacements }: Progress): Promise<void> {
  const unseen = () => [...running.values()].flat();
  const naming = listContainers(rollout.engine, rollout.project.name)
    .catch(unseen)
    .then((present) => undoImageNames(rollout, running, present, outcomes));
  for (const { service: name } of outcomes.filter(({ outcome }) => outcome === "recreated")) {
    const text = `stays at the new version, though another service failed: it was recreated, and its data may not suit the old version. To go back, undo its change in the sources or the compose file, then: hotpush rollout ${name}`;
    note({ ...rollout, service: { name } }, text);
  }
  await Promise.all([naming, ...replacements.map(undoReplacement)]);
}

async function undoReplacement(roll: Replacement): Promise<void> {
  const { on, isSwitched, hasFailed } = roll;
  roll.goesBack.abort();
  // There is nothing to go back to.
  if (isSwitched && roll.old.length === 0) {
    if (!hasFailed) note(on, "is new and stays, though another service failed");
    return;
  }
  const step = isSwitched ? "goes back to the old version" : "is given up";
  if (!hasFailed && !on.signal.aborted) note(on, `${step}, because another service failed`);
  try {
    const present = await containersOf(on).catch(() => roll.old);
    const left = present.filter(({ id }) => roll.old.some((one) => one.id === id));
    const old = isSwitched ? left.filter(({ status }) => /^(?:running|restarting)$/.test(status)) : left;
    if (old.length === 0 && roll.old.length > 0)
      throw new Error("its old containers do not run any more, so the new ones stay");
    if (isSwitched) {
      await switchTraffic(on, old, "roll back").catch(() => {});
      const named = await namesReceiving(on);
      // The next roll-out recovers.
      if (roll.fresh.some(({ name }) => named.includes(name)))
        throw new Error("its live file cannot be written");
      await drainOld(on, roll.fresh);
    }
    // A worker may have begun a job, also if another service failed.
    await remove(on, "abandon", roll.fresh, hasFailed && !isSwitched ? 0 : graceOf(on));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    note(on, `could not go back: ${reason}`);
  }
}

/**
 * Gives the running images their names back. Otherwise a later `docker compose up`, or a restart of
 * the machine with it, would start the version that failed. A service of whose old image no container is left was recreated: it stays
 * new, and its image keeps the name, or the next roll-out would put the old image over the new data. For the same reason, a one-shot
 * service that ran keeps its new image's name, unless another service shares it.
 *
 * @param present all containers of the project as they are now
 */
export async function undoImageNames(
  { engine, services, report }: Pick<Rollout, "engine" | "services" | "report">,
  running: RunningContainers,
  present: Containers,
  outcomes: readonly ServiceOutcome[],
): Promise<void> {
  const ran = outcomes.filter(({ outcome }) => outcome === "ran").map(({ service }) => service);
  const isGone = ({ service, image }: Container) =>
    !present.some((one) => one.service === service && one.image === image);
  const isRecreated = ({ name }: RolloutService) => {
    const old = (running.get(name) ?? []).filter(({ status }) => status === "running");
    return !ran.includes(name) && old.length > 0 && old.every(isGone);
  };
  const kept = services.filter(isRecreated).map(({ image }) => image);
  for (const service of services) {
    const { name, image } = service;
    const old = (running.get(name) ?? []).find(({ imageName }) => imageName === image);
    if (!old || image.includes("@") || kept.includes(image) || ran.includes(name)) continue;
    const named = await inspectImage(engine, image).catch(() => null);
    if (named === null || named.id === old.image) continue;
    const text = `${image} is now the version that failed, because Docker has dropped the old image: docker compose up would start it`;
    await tagImage(engine, old.image, image).catch(() => note({ report, service }, text));
  }
}

/**
 * Never resolves (RFC 2606), so the proxy refuses new requests while the old container finishes its own. On a server it sends
 * them on to the service's name, until no container has that.
 */
const nobody = "nobody.invalid";

/**
 * Stops and removes the containers of a service that has no replicas any more (`deploy.replicas: 0`), as compose
 * does. If the proxy sends requests to them, it stops that first, and lets those in flight end.
 */
export async function removeService(on: ServiceRollout): Promise<ServiceOutcome> {
  const { service } = on;
  const leaving = await containersOf(on);
  if (leaving.length === 0) return outcomeOf(service, "unchanged", {});
  // A live file counts only if a roll-out has written it.
  const directedBy = (await namesReceiving(on)).length > 0 ? on.directedBy : null;
  if (directedBy !== null) {
    const write = () => switchLiveFiles(directedBy.path, service.name, [nobody]);
    await timed(on, "switch", write, "no replicas any more: its live file names nobody");
  }
  const running = leaving.filter(({ status }) => status === "running");
  const drainedMs = await drainOld({ ...on, directedBy }, running);
  await remove(on, "stop", leaving, graceOf({ ...on, directedBy }));
  return outcomeOf(service, "removed", { old: leaving }, { drainedMs });
}
