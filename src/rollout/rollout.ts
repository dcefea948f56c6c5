import { type Container, listContainers } from "../platform/docker/container.ts";
import { inspectImage } from "../platform/docker/image.ts";
import type { RolloutService } from "./compose/project.ts";
import type { Rollout, RolloutRequest } from "./context.ts";
import { nameImages, restoreImageNames } from "./images/image-names.ts";
import { prepareImages } from "./images/prepare-images.ts";
import { pruneProject } from "./images/prune.ts";
import { anonymousVolume, type OneShots, oneShotsOf, planService } from "./plan.ts";
import { adoptLiveFiles } from "./proxy/adopt-live-files.ts";
import { checkThroughProxy } from "./proxy/check.ts";
import { recordFirstVersion, recordVersion, servingImages } from "./record-version.ts";
import { recoverService, removeLeftovers } from "./recover.ts";
import { outcomeOf, reportSkipped, type ServiceOutcome, unchangedOutcome } from "./report/report.ts";
import { requestRecreation, requestRemoval } from "./self-update/request-replacement.ts";
import { recreateService } from "./steps/recreate-service.ts";
import { removeService } from "./steps/remove-service.ts";
import { rollBackEarlier } from "./steps/roll-back-earlier.ts";
import { rollService } from "./steps/roll-service.ts";
import { endEarlierRun, runService } from "./steps/run-service.ts";
import { warnAboutOrphans, warnIfUnhealthy } from "./warnings.ts";
import { withRollout } from "./with-rollout.ts";

/**
 * Brings the services of a compose project up to date with the compose file and their sources, without dropping a
 * request: lock, recover, build and tag, then each changed service in the order of its dependencies. If one fails,
 * the old versions serve again, including those of services that were replaced before it.
 */
export async function rollOut(request: RolloutRequest): Promise<void> {
  await withRollout(request, async (rollout) => {
    const { services, commit, project, report } = rollout;
    report({ event: "started", project: project.name, commit, services: services.map(({ name }) => name) });
    await warnAboutOrphans(rollout);
    const running = await recoverAll(rollout, services);
    await recordFirstVersion(rollout);
    const oneShots = oneShotsOf(rollout);
    const outcomes: ServiceOutcome[] = [];
    try {
      await bringImages(rollout, running);
      for (const service of services.filter(({ replicas }) => replicas > 0))
        outcomes.push(await bringUpToDate(rollout, service, running.get(service.name) ?? [], oneShots));
    } catch (error) {
      await restoreImageNames(rollout, services, running, outcomes);
      await rollBackEarlier(rollout, services, outcomes, running);
      throw error;
    }
    // Last, because a failure before would have to undo it; in reverse, because their callers are up to date
    // by now.
    for (const service of services.filter(({ replicas }) => replicas === 0).toReversed())
      outcomes.push(await removeService(rollout, service));
    await adoptLiveFiles(rollout);
    await checkFirstStarts(rollout, services, outcomes);
    const ran = outcomes.filter(({ outcome }) => outcome === "ran").map(({ service }) => service);
    const ranAtCommit = [...new Set([...oneShots.ranAtCommit, ...ran])];
    await recordVersion(rollout, () => servingImages(rollout), ranAtCommit);
    return outcomes;
  });
}

async function recoverAll(
  rollout: Rollout,
  services: readonly RolloutService[],
): Promise<ReadonlyMap<string, readonly Container[]>> {
  const running = new Map<string, readonly Container[]>();
  for (const service of services) running.set(service.name, await recoverService(rollout, service));
  return running;
}

/** There is no old version to go back to: new containers stay, so that an operator can look at them. */
async function checkFirstStarts(
  rollout: Rollout,
  services: readonly RolloutService[],
  outcomes: readonly ServiceOutcome[],
): Promise<void> {
  const started = outcomes.filter(({ outcome }) => outcome === "started").map(({ service }) => service);
  for (const service of services.filter(({ name }) => started.includes(name)))
    await checkThroughProxy(rollout, service);
}

/** For a roll back, the images are on this machine; otherwise they are built or pulled. */
async function bringImages(
  rollout: Rollout,
  running: ReadonlyMap<string, readonly Container[]>,
): Promise<void> {
  const { services, version, commit, withBuild, withPull } = rollout;
  if (version) return nameImages(rollout, services, version);
  const makeRoom = async () => void (await pruneProject(rollout, rollout.project.name));
  return prepareImages(rollout, services, { commit, withBuild, withPull, running, prune: makeRoom });
}

async function bringUpToDate(
  rollout: Rollout,
  service: RolloutService,
  found: readonly Container[],
  oneShots: OneShots,
): Promise<ServiceOutcome> {
  rollout.signal.throwIfAborted();
  const containers = service.replacement.how === "run-once" ? await endEarlierRun(rollout, service) : found;
  const isOwn = rollout.own?.service === service.name;
  if (isOwn && !containers.some(({ id }) => id === rollout.own?.id)) {
    // A new container has replaced the one that this process runs in. The removal is requested again here: a
    // roll-out that was killed may not have requested it.
    requestRemoval(rollout);
    return unchangedOutcome(service, containers);
  }
  const image = await inspectImage(rollout.engine, service.image);
  const configHashes = (await rollout.configHashes).get(service.name) ?? [];
  const action = planService(service, containers, { imageId: image?.id ?? null, configHashes }, oneShots);
  switch (action.kind) {
    case "leave":
      warnIfUnhealthy(rollout, service, containers);
      return unchangedOutcome(service, containers);
    case "start":
      return startService(rollout, service);
    case "roll":
      return rollService(rollout, service, containers);
    case "recreate":
      if (isOwn)
        return requestRecreation(rollout, service, containers, {
          reason: action.reason,
          commit: rollout.commit,
        });
      return recreateService(rollout, service, containers, action.reason);
    case "run":
      return runService(rollout, service);
    case "skip":
      reportSkipped({ ...rollout, service });
      return outcomeOf(service, "skipped", {});
  }
}

/** None of its containers ran when the roll-out began. One that was crashing may have recovered during the build. */
async function startService(rollout: Rollout, service: RolloutService): Promise<ServiceOutcome> {
  const recovered = (await recoverService(rollout, service)).filter(({ status }) => status === "running");
  const { engine, project } = rollout;
  const present = recovered.length > 0 ? recovered : await listContainers(engine, project.name, service.name);
  const volume = anonymousVolume(service, present);
  if (volume !== null) return recreateService(rollout, service, present, `anonymous volume ${volume}`);
  if (recovered.length === 0) await removeLeftovers(rollout, service);
  return rollService(rollout, service, recovered);
}
