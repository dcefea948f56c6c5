import { scaleUpCommand, startFailure } from "#platform/compose";
import {
  discardContainers,
  inspectContainer,
  namesOf,
  removeContainer,
  stopContainer,
} from "#platform/docker/containers";
import { waitReady } from "#platform/docker/health";
import { inspectImage, tagImage } from "#platform/docker/images";
import { hasSucceeded } from "#platform/run-command";
import { ProblemError } from "#problems";
import {
  type Containers,
  containersOf,
  longestGraceS,
  onService,
  type ParallelRollout,
  type Rollout,
  type RunningContainers,
  type ServiceRollout,
} from "./context.ts";
import { anonymousVolume, planService } from "./plan.ts";
import type { RolloutService } from "./project.ts";
import { recoverService, removeLeftovers } from "./recover.ts";
import { endEarlierRun, recreateService, runService } from "./recreate-service.ts";
import { refuseChangedNetworks } from "./refuse-compose-file.ts";
import { note, outcomeOf, ranOutcome, type ServiceOutcome, timed, unchangedOutcome } from "./report.ts";
import { guardNewVersion } from "./requests.ts";
import {
  checkThroughProxy,
  type DrainSummary,
  drainOld,
  namesReceiving,
  switchLiveFiles,
  switchTraffic,
} from "./switch-traffic.ts";
import { explainBadAnswer, requireStillServing, waitAllReady } from "./verify.ts";

/**
 * Does with one service what its plan says, now that its image is here.
 *
 * @param found its containers when the roll-out began
 * @throws ProblemError if the new version fails: then the old one serves
 */
export async function updateService(on: ParallelRollout, found: Containers): Promise<ServiceOutcome> {
  const { service, engine, parallel } = on;
  const { shared, exclusive, failed } = parallel;
  on.signal.throwIfAborted();
  failed.throwIfAborted();
  // Alone, because it may be what the others are checked through: the proxy, or a database.
  const recreate = (old: Containers, reason: string) =>
    exclusive(async () => {
      failed.throwIfAborted();
      return recreateService(on, old, reason);
    });
  const containers = service.replacement.how === "run-once" ? await endEarlierRun(on) : found;
  const imageId = (await inspectImage(engine, service.image))?.id ?? null;
  const action = planService(on, containers, { imageId, configHashes: await hashesOf(on) });
  switch (action.kind) {
    case "leave":
      return unchangedOutcome(service, containers);
    case "start": {
      // None of its containers ran when the roll-out began. One that was crashing may have recovered during the build.
      const recovered = (await recoverService(on)).filter(({ status }) => status === "running");
      const present = recovered.length > 0 ? recovered : await containersOf(on);
      const volume = anonymousVolume(service, present);
      if (volume !== null) return recreate(present, `anonymous volume ${volume}`);
      if (recovered.length === 0) await removeLeftovers(on);
      return rollService(on, recovered);
    }
    case "roll":
      return rollService(on, containers);
    case "recreate":
      return recreate(containers, action.reason);
    case "run":
      return shared(() => runService(on));
    case "skip":
      note(on, "is not run in a roll back: what it changed stays as it is");
      return outcomeOf(service, "skipped", {});
  }
}

async function hashesOf({ configHashes, service }: ServiceRollout): Promise<readonly string[]> {
  return (await configHashes).get(service.name) ?? [];
}

/**
 * Replaces the containers `old` of a service without dropping a request: start the new ones beside the old, wait until they
 * are healthy, switch the traffic, watch, stop and remove the old ones.
 *
 * @throws ProblemError if the new ones fail: the old ones still serve, and the new ones are removed
 */
async function rollService(asked: ParallelRollout, old: Containers): Promise<ServiceOutcome> {
  const { shared, failed } = asked.parallel;
  const on = { ...asked, signal: AbortSignal.any([asked.signal, failed]) };
  const { service } = on;
  const replace = async (): Promise<ServiceOutcome> => {
    const fresh = await startBeside(on, old);
    const { healthyAfterMs, haveEnded } = await waitOrAbandon(on, old, fresh);
    if (haveEnded) return ranOutcome(service, fresh);
    await switchOrAbandon(on, old, fresh);
    // After a first start there is nothing to go back to, and the proxy may not run yet: its check comes at the end.
    const moved = old.length === 0 ? {} : await verifyInService(on, old, fresh);
    await verifyAlone(on, old, fresh);
    await removeOld(on, old);
    const outcome = old.length === 0 ? "started" : "rolled";
    return outcomeOf(service, outcome, { old, new: fresh }, { healthyAfterMs, ...moved });
  };
  try {
    return await shared(replace);
  } catch (error) {
    if (failed.aborted) note(on, "is given up, because another service failed");
    throw error;
  }
}

/** Starts as many new containers of the service as it has replicas. */
async function startBeside(on: ParallelRollout, old: Containers): Promise<Containers> {
  const { target, service, signal, parallel } = on;
  const scale = { service: service.name, count: old.length + service.replicas };
  // Known by ids that were not there before: the numbers in their names cannot be predicted.
  const known = new Set(old.map(({ id }) => id));
  const newContainers = async () => (await containersOf(on)).filter(({ id }) => !known.has(id));
  const start = async () => {
    signal.throwIfAborted();
    if (old.length > 0) await refuseChangedNetworks(on, service, scaleUpCommand(target, [scale]));
    try {
      const ending = await parallel.startContainers(scale);
      const fresh = await newContainers();
      if (hasSucceeded(ending) && fresh.length === service.replicas) return fresh;
      throw startFailure(service.name, "start", ending);
    } catch (error) {
      await abandon(on, await newContainers());
      throw error;
    }
  };
  return (await timed(on, "start", start, namesOf)).result;
}

async function waitOrAbandon(on: ParallelRollout, old: Containers, fresh: Containers) {
  // If it served before, or if the proxy reads a live file for it, ending is a failure, whatever the exit code.
  const mayEnd = on.service.mayEnd && old.length === 0 && !on.liveFilesRead?.has(on.service.name);
  try {
    const ready = await waitAllReady(on, fresh, { mayEnd });
    on.parallel.failed.throwIfAborted();
    return ready;
  } catch (error) {
    await abandon(on, fresh);
    throw error;
  }
}

/** New containers that a live file names already stay: the next roll-out recovers. */
async function switchOrAbandon(on: ServiceRollout, old: Containers, fresh: Containers): Promise<void> {
  try {
    await switchTraffic(on, fresh);
  } catch (error) {
    await switchTraffic(on, old).catch(() => {});
    const named = await namesReceiving(on);
    if (!fresh.some(({ name }) => named.includes(name))) await abandon(on, fresh);
    throw error;
  }
}

/**
 * With the traffic on the new containers, runs the check through the proxy while the old ones drain and the guard watches
 * the new ones, and looks at these once more: a version can be healthy until its first real request. The check runs only if a
 * live file has moved the traffic: otherwise the old ones may answer it. These still run, so rolling back is one more switch.
 *
 * @returns what was seen of the requests to the old ones
 * @throws ProblemError if the new ones fail, or the signal's reason if another service does; the old ones serve again, and the new ones
 * are removed
 */
async function verifyInService(
  on: ParallelRollout,
  old: Containers,
  fresh: Containers,
): Promise<DrainSummary> {
  const { failed } = on.parallel;
  const draining = new AbortController();
  const anotherFails = new Promise<never>((_, reject) => {
    if (failed.aborted) reject(failed.reason);
    failed.addEventListener("abort", () => reject(failed.reason), { once: true });
  });
  try {
    const verified = Promise.all([
      drainOld(on, old, draining.signal),
      on.traffic.by === "live file" && checkThroughProxy(on),
      guardNewVersion(on, old, fresh, draining.signal),
    ]);
    const [moved] = await Promise.race([verified, anotherFails]);
    await requireStillServing(on, fresh);
    return moved;
  } catch (error) {
    draining.abort();
    await switchTraffic(on, old);
    await drainOld(on, fresh);
    throw await explainAndAbandon(on, fresh, error);
  }
}

/**
 * Runs the check again if Caddy did not report that it reads the live file: the old containers may have answered so
 * far, so they are stopped first. If the new ones answer badly, the old ones are started again.
 *
 * @throws ProblemError `proxy_check_failed`; the old ones serve again, and the new ones are removed
 */
async function verifyAlone(on: ServiceRollout, old: Containers, fresh: Containers): Promise<void> {
  const { engine, service, traffic, liveFilesRead } = on;
  const isProved = traffic.by === "live file" && liveFilesRead !== null;
  if (isProved || service.checkUrl === null || old.length === 0) return;
  const stop = () => Promise.all(old.map((one) => stopContainer(engine, one, Number.POSITIVE_INFINITY)));
  await timed(on, "stop", stop, `${namesOf(old)} stopped`);
  try {
    await checkThroughProxy(on);
  } catch (error) {
    const start = async ({ id }: { readonly id: string }) => {
      await engine.post(`/containers/${id}/start`);
      await waitReady(engine, id, service.healthyTimeoutMs);
    };
    await timed(on, "roll back", () => Promise.all(old.map(start)), `${namesOf(old)} started again`);
    await switchTraffic(on, old);
    throw await explainAndAbandon(on, fresh, error);
  }
}

async function explainAndAbandon(on: ServiceRollout, fresh: Containers, error: unknown): Promise<unknown> {
  const explained = await explainBadAnswer(on, fresh, error);
  await abandon(on, fresh);
  return explained;
}

/** Removes new containers that will not serve. The next roll-out removes what cannot be removed now. */
async function abandon(on: ServiceRollout, containers: Containers): Promise<void> {
  if (containers.length === 0) return;
  const names = namesOf(containers);
  const remove = () => Promise.allSettled(containers.map(({ id }) => removeContainer(on.engine, id)));
  await timed(on, "abandon", remove, (results) =>
    results.every(({ status }) => status === "fulfilled")
      ? `${names} removed`
      : `${names} could not be removed; the next roll-out will`,
  );
}

/**
 * Stops and removes old containers that get no more requests. The new ones are verified and serve by now: a stopped
 * container that cannot be removed is reported, and left to the next roll-out.
 *
 * @throws ProblemError `docker_refused` if one keeps running
 */
async function removeOld(on: ServiceRollout, containers: Containers): Promise<void> {
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

/** Never resolves (RFC 2606), so the proxy refuses new requests while the old container finishes its own. */
const nobody = "nobody.invalid";

/**
 * Stops and removes the containers of a service that has no replicas any more (`deploy.replicas: 0`), as compose
 * does. If the proxy sends requests to them, it stops that first, and lets those in flight end.
 *
 * @throws ProblemError `docker_refused` if one keeps running
 */
export async function removeService(on: ServiceRollout): Promise<ServiceOutcome> {
  const { service, traffic } = on;
  const leaving = await containersOf(on);
  if (leaving.length === 0) return unchangedOutcome(service, leaving);
  let drainedMs: number | null = null;
  // A live file counts only if a roll-out has written it.
  if (traffic.by === "live file" && (await namesReceiving(on)).length > 0) {
    const write = () => switchLiveFiles(traffic.directory.path, service.name, [nobody]);
    await timed(on, "switch", write, "no replicas any more: the proxy refuses its requests from now on");
    const running = leaving.filter(({ status }) => status === "running");
    drainedMs = (await drainOld(on, running)).drainedMs;
  }
  await removeOld(drainedMs === null ? { ...on, traffic: { by: "nobody" } } : on, leaving);
  return outcomeOf(service, "removed", { old: leaving }, { drainedMs });
}

/**
 * If one service fails, the running images get their names back, and those replaced before it roll back to their old
 * images by the same steps, without a build, so that the serving versions belong together. Some stay new, with a note
 * on what to do: a service whose image has another name in the compose file now, and one that was recreated, because
 * a database may not go back.
 *
 * @param running the containers of each service before the roll-out
 * @param outcomes of the services that did not fail
 */
export async function rollBackServices(
  rollout: Rollout,
  running: RunningContainers,
  outcomes: readonly ServiceOutcome[],
  parallel: ParallelRollout["parallel"],
): Promise<void> {
  await rollBackImageNames(rollout, running, outcomes);
  for (const { service: name, outcome } of outcomes.toReversed()) {
    const service = rollout.services.find((candidate) => candidate.name === name);
    if (!service || (outcome !== "rolled" && outcome !== "recreated")) continue;
    const old = running.get(name) ?? [];
    const obstacle =
      outcome === "recreated"
        ? "it was recreated, and its data may not suit the old version"
        : renamed(service, old);
    // It served before, and a guard would only hold up the others.
    const on = { ...onService(rollout, { ...service, guardMs: 0 }), parallel };
    if (obstacle === null) await rollBack(on, old);
    else {
      const advice = `To go back, undo its change in the sources or the compose file, then: hotpush rollout ${name}`;
      note(on, `stays at the new version, though another service failed: ${obstacle}. ${advice}`);
    }
  }
}

/** Why an old image cannot run under the name in the compose file, or null. */
function renamed({ image }: RolloutService, old: Containers): string | null {
  const names = new Set(old.map(({ imageName }) => imageName));
  return names.has(image) ? null : `its image was ${[...names].join(", ")} and is ${image} now`;
}

async function rollBack(on: ParallelRollout, old: Containers): Promise<void> {
  try {
    const configHashes = await hashesOf(on);
    const isChanged = old.some(({ configHash }) => !configHashes.includes(configHash));
    const configuration = isChanged ? ", with the configuration that the compose file has now" : "";
    note(on, `goes back to the old version, because another service failed${configuration}`);
    await rollService(on, await containersOf(on));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    note(on, `could not go back and serves the new version: ${reason}`);
  }
}

/**
 * Gives the running images their names back. Otherwise a later `docker compose up`, or a restart of
 * the machine with it, would start the version that failed. A recreated service stays new, and its image keeps the
 * name: otherwise the next roll-out would put the old image over the new data. For the same reason, a one-shot
 * service that ran keeps its new image's name, unless another service shares it.
 */
export async function rollBackImageNames(
  { engine, services }: Pick<Rollout, "engine" | "services">,
  running: RunningContainers,
  outcomes: readonly ServiceOutcome[],
): Promise<void> {
  const outcomeOfService = ({ name }: RolloutService) =>
    outcomes.find(({ service }) => service === name)?.outcome;
  const kept = services
    .filter((service) => outcomeOfService(service) === "recreated")
    .map(({ image }) => image);
  for (const service of services) {
    if (kept.includes(service.image) || outcomeOfService(service) === "ran") continue;
    const old = (running.get(service.name) ?? []).find(({ imageName }) => imageName === service.image);
    if (!old || service.image.includes("@")) continue;
    const named = await inspectImage(engine, service.image).catch(() => null);
    if (named !== null && named.id !== old.image)
      await tagImage(engine, old.image, service.image).catch(() => {});
  }
}
