import { listContainers } from "../platform/docker/container.ts";
import { onService, type Rollout, type RolloutRequest, type RunningContainers } from "./context.ts";
import { nameImages, prepareImages } from "./images/prepare-images.ts";
import { pruneProject } from "./images/prune.ts";
import { oneShotsOf } from "./plan.ts";
import { checkThroughProxy, patientLimits } from "./proxy/check.ts";
import { adoptLiveFiles } from "./proxy/live-directory.ts";
import { recordFirstVersion, recordVersion, servingImages } from "./record-version.ts";
import { recoverService } from "./recover.ts";
import type { ServiceOutcome } from "./report/report.ts";
import { bringAllUpToDate } from "./side-by-side/bring-all-up-to-date.ts";
import { warnOfMemory } from "./side-by-side/warn-of-memory.ts";
import { removeService } from "./steps/remove.ts";
import { rollBackEarlier } from "./steps/roll-back-earlier.ts";
import { withRollout } from "./with-rollout.ts";

/**
 * Brings the services of a compose project up to date with the compose file and their sources, without dropping a
 * request: lock, recover, build and tag, then each changed service as soon as those are that it depends on. If one
 * fails, the old versions serve again, including those of services that were replaced before it.
 */
export async function rollOut(request: RolloutRequest): Promise<void> {
  await withRollout(request, async (rollout) => {
    const { services, commit, project, report, version } = rollout;
    report({ event: "started", project: project.name, commit, services: services.map(({ name }) => name) });
    await warnAboutOrphans(rollout);
    const running = await recoverAll(rollout);
    await recordFirstVersion(rollout);
    const outcomes: ServiceOutcome[] = [];
    try {
      if (version) await nameImages(rollout, services, version);
      else await Promise.all([prepareAll(rollout, running), warnOfMemory(rollout, running)]);
      await bringAllUpToDate(rollout, running, outcomes);
    } catch (error) {
      await rollBackEarlier(rollout, running, outcomes);
      throw error;
    }
    // Last, because a failure before would have to undo it; in reverse, because their callers are up to date
    // by now.
    for (const service of services.filter(({ replicas }) => replicas === 0).toReversed())
      outcomes.push(await removeService(onService(rollout, service)));
    await adoptLiveFiles(rollout);
    await checkFirstStarts(rollout, outcomes);
    await recordVersion(rollout, () => servingImages(rollout), ranToTheirEnd(rollout, outcomes));
    return inOrder(outcomes, services);
  });
}

function prepareAll(rollout: Rollout, running: RunningContainers): Promise<void> {
  return prepareImages(rollout, rollout.services, running, () => pruneProject(rollout));
}

/** Services end in any order; the closing table has that of the roll-out. */
function inOrder(
  outcomes: readonly ServiceOutcome[],
  services: Rollout["services"],
): readonly ServiceOutcome[] {
  const names = services.map(({ name }) => name);
  return outcomes.toSorted((one, other) => names.indexOf(one.service) - names.indexOf(other.service));
}

/**
 * Warns about containers whose service is no longer in the compose file. They are left alone: another compose file,
 * or a profile, may still have it.
 */
async function warnAboutOrphans({ engine, project, own, report }: Rollout): Promise<void> {
  const known = new Set([...project.services.map(({ name }) => name), own]);
  const orphans = (await listContainers(engine, project.name)).filter(({ service }) => !known.has(service));
  for (const [name, containers] of Map.groupBy(orphans, ({ service }) => service)) {
    const names = containers.map((container) => container.name).join(" ");
    const text = `is not in the compose file, but has containers. If it is gone for good: docker rm --force ${names}`;
    report({ event: "note", service: name, text });
  }
}

async function recoverAll(rollout: Rollout): Promise<RunningContainers> {
  const recovering = rollout.services.map(
    async (service) => [service.name, await recoverService(onService(rollout, service))] as const,
  );
  await Promise.allSettled(recovering); // The lock is not released while one is still at work.
  return new Map(await Promise.all(recovering));
}

/**
 * There is no old version to go back to: new containers stay, so that an operator can look at them. The proxy itself may have
 * started just now.
 */
async function checkFirstStarts(rollout: Rollout, outcomes: readonly ServiceOutcome[]): Promise<void> {
  const started = outcomes.filter(({ outcome }) => outcome === "started").map(({ service }) => service);
  for (const service of rollout.services.filter(({ name }) => started.includes(name)))
    await checkThroughProxy({ ...rollout, service }, patientLimits);
}

/** The one-shot services that ran at this commit, in this roll-out or before. */
function ranToTheirEnd(rollout: Rollout, outcomes: readonly ServiceOutcome[]): readonly string[] {
  const ran = outcomes.filter(({ outcome }) => outcome === "ran").map(({ service }) => service);
  return [...new Set([...oneShotsOf(rollout).ranAtCommit, ...ran])];
}
