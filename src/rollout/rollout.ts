import { type ComposeOptions, loadImageNames, loadModel } from "#platform/compose";
import { listContainers } from "#platform/docker/containers";
import { ProblemError } from "#problems";
import type { LockedContext, Rollout, RolloutRequest, RunningContainers } from "./context.ts";
import {
  commitOf,
  imagesInUse,
  nameServingImages,
  prepareImages,
  recordFirstVersion,
  recordVersion,
  servingImages,
} from "./images.ts";
import { chooseEngine, findLiveDirectory, refuseLostOverride, withoutNeighbors } from "./locate-project.ts";
import { readProjectAround, refuseOtherHome, selectServices } from "./project.ts";
import { type Pruned, type PruneRequest, prune, pruneBeside } from "./prune.ts";
import { note, type ServiceOutcome, timed } from "./report.ts";
import { withRequestsCounted } from "./requests.ts";
import {
  finishReplacement,
  guardReplacements,
  type Progress,
  recoverService,
  removeService,
  undo,
  updateWave,
  wavesOf,
} from "./roll-service.ts";
import { loadStack, pruneStack, rollOutStack } from "./stack.ts";
import {
  noteFilesKept,
  readContents,
  recordLeft,
  refuseChangedParts,
  withContents,
  withStarted,
} from "./started-from.ts";
import { lockRollout, noGoodVersion, previousVersion, readVersions } from "./state.ts";
import {
  adoptLiveFiles,
  checkThroughProxy,
  findLiveFilesRead,
  onService,
  patient,
  refuseForeignLiveFiles,
} from "./switch-traffic.ts";

/**
 * Rolls out a project, by compose on one machine or by Swarm as a stack. It holds the project's lock, and reports the outcomes as
 * the last event. The version to go back to is chosen under the lock: another roll-out may add one until then.
 *
 * @throws ProblemError if the new version does not serve, or serves but could not be recorded (`state_unusable`)
 */
export async function rollOut(request: RolloutRequest): Promise<void> {
  const { target, env, back, versionsPath, report, signal } = request;
  const work = (await chooseEngine(request)) === "swarm" ? rollOutStack : rollOutProject;
  const { descriptor, release } = await lockRollout(request.lockPath, request.lockWaitS, request);
  try {
    const startedMs = performance.now();
    // Before anything else: if they are damaged, this one could not be recorded either.
    const versions = await readVersions(versionsPath);
    const version = back && previousVersion(versions, back.commit);
    if (back && !version)
      throw new ProblemError({ code: "no_previous_version", detail: noGoodVersion(versions, back.commit) });
    const commit = version?.commit ?? (await commitOf(target.projectDirectory, request.commit, env));
    const current = versions.at(-1) ?? null;
    const services = await work({ ...request, lockDescriptor: descriptor, commit, version, current });
    report({ event: "finished", durationMs: Math.round(performance.now() - startedMs), services });
  } catch (error) {
    const wasAborted = error instanceof Error && error.name === "AbortError" && signal.aborted;
    if (!wasAborted) throw error;
    throw new ProblemError({ code: "rollout_interrupted", detail: "The roll-out was asked to stop." }, error);
  } finally {
    await release();
  }
}

/**
 * Brings the services of a compose project up to date with the compose file and their sources, without dropping a
 * request. The old containers stay until all new ones have proved good: if one fails, the old versions of all serve again.
 *
 * @throws ProblemError for expected failures, such as `rollout_interrupted`, `state_unusable`, `no_previous_version`
 */
async function rollOutProject(context: LockedContext): Promise<readonly ServiceOutcome[]> {
  const read = { ...(await readRollout(context)), requestCount: null };
  const { project, commit, services, report } = read;
  // Before the requests are counted by container: a new one may get the name of a leftover.
  const running = await recoverAll(read);
  return withRequestsCounted(read, running, (requestCount) => {
    report({ event: "started", project: project.name, commit, services: services.map(({ name }) => name) });
    warnAboutOrphans(read);
    return rollOutServices({ ...read, requestCount }, running);
  });
}

async function readRollout(context: LockedContext) {
  const { engine, target, env, names } = context;
  const read = async () => {
    const text = "is not set here, and is blank in the compose file: write it into .env";
    const model = await loadModel(context, (name) => note(context, `${name} ${text}`));
    const contents = readContents(context, model);
    contents.catch(() => {}); // If something else fails first, nobody awaits it.
    await refuseLostOverride(engine, target, model, env);
    const found = await listContainers(engine, model.name);
    const directory = target.projectDirectory;
    const containers = await withoutNeighbors(engine, directory, model, found, context.current);
    refuseOtherHome(model, { home: env.HOME, projectDirectory: target.projectDirectory }, containers);
    const around = await readProjectAround(context, model);
    const liveDirectory = await findLiveDirectory(engine, model, env);
    const rollout = {
      ...context,
      ...around,
      containers,
      liveDirectory,
      model,
      contents,
      liveFilesRead: liveDirectory && (await findLiveFilesRead(liveDirectory)),
    };
    await refuseForeignLiveFiles(rollout);
    return rollout;
  };
  const { result } = await timed(context, "read", read, ({ project, own, liveDirectory }) => {
    const without = own === null ? "" : `, without ${own}, which runs this`;
    const files = liveDirectory === null ? "no live directory yet" : `live files in ${liveDirectory.path}`;
    return `project ${project.name}${without}, ${files}`;
  });
  return { ...result, services: selectServices(result, names) };
}

/**
 * Warns about containers whose service is no longer in the compose file. They are left alone: another compose file,
 * or a profile, may still have it.
 */
function warnAboutOrphans({ containers, project, own, report }: Rollout): void {
  const known = new Set([...project.services.map(({ name }) => name), own]);
  const orphans = containers.filter(({ service }) => !known.has(service));
  for (const [name, left] of Map.groupBy(orphans, ({ service }) => service)) {
    const names = left.map((container) => container.name).join(" ");
    const text = `is not in the compose file, or in a profile that COMPOSE_PROFILES in .env does not name, but has containers. If it is gone for good: docker rm --force ${names}`;
    note({ report, service: { name } }, text);
  }
}

async function recoverAll(rollout: Rollout): Promise<RunningContainers> {
  const recovering = rollout.services.map(async (service) => {
    const present = rollout.containers.filter((container) => container.service === service.name);
    return [service.name, await recoverService(onService(rollout, service), present)] as const;
  });
  await Promise.allSettled(recovering); // The lock is not released while one is still at work.
  return new Map(await Promise.all(recovering));
}

async function rollOutServices(
  rollout: Rollout,
  running: RunningContainers,
): Promise<readonly ServiceOutcome[]> {
  const { services, project, current, version, withPrune, signal } = rollout;
  const names = services.map(({ name }) => name);
  const progress: Progress = { running, outcomes: [], replacements: [] };
  const { outcomes, replacements } = progress;
  await nameServingImages(rollout);
  const known = current ?? (await recordFirstVersion(rollout));
  const failing = new AbortController();
  let pruning: Promise<void> | null = null;
  try {
    await prepareImages(rollout, services);
    if (version !== null) await noteFilesKept(rollout);
    else await refuseChangedParts(rollout);
    for (const wave of wavesOf(services.filter(({ replicas }) => replicas > 0)))
      await updateWave(rollout, wave, progress);
    await checkFirstStarts(rollout, progress);
    // The new version is not recorded yet, so this keeps one good version more than a prune afterwards.
    const pruneNow = async () => {
      const [images, inUse] = await Promise.all([loadImageNames(rollout), imagesInUse(rollout)]);
      const pruned = { project: { name: project.name, images }, inUse };
      return prune({ ...rollout, ...pruned, signal: AbortSignal.any([signal, failing.signal]) });
    };
    pruning = withPrune ? pruneBeside(rollout, pruneNow) : null;
    await guardReplacements(replacements);
    await pruning;
    signal.throwIfAborted();
  } catch (error) {
    failing.abort();
    await undo(rollout, progress);
    if (version === null) await noteFilesKept(rollout).catch(() => {});
    await recordLeft(rollout, outcomes).catch(() => {}); // The next one then says that it does not know.
    throw error;
  } finally {
    await pruning; // It must not go on without the lock.
  }
  outcomes.push(...(await Promise.all(replacements.map(finishReplacement))));
  // Last, because a failure before would have to undo it; in reverse, because their callers are up to date by now.
  for (const service of services.filter(({ replicas }) => replicas === 0).toReversed())
    outcomes.push(await removeService(onService(rollout, service)));
  await adoptLiveFiles(rollout, project.services);
  // What was not asked for now counts as it did: it may have failed its first check, or its recreation was interrupted.
  const serving = Object.entries(await servingImages(rollout));
  const all = serving.map(([name, image]) => [name, names.includes(name) ? image : known?.images[name]]);
  const images = await withContents(
    rollout,
    Object.fromEntries(all.filter(([, image]) => image !== undefined)),
  );
  const recorded = { ...rollout, version: version && withStarted(version, images) };
  await recordVersion(recorded, async () => images);
  // Services end in any order.
  return outcomes.toSorted((one, other) => names.indexOf(one.service) - names.indexOf(other.service));
}

/**
 * Checks the services that had no good version, while those of the others still run. There is nothing to go back to: their new
 * containers stay, so that an operator can look at them, and are checked again next time. The proxy itself may have started just now.
 */
async function checkFirstStarts(rollout: Rollout, { outcomes, replacements }: Progress): Promise<void> {
  const { version, current } = rollout;
  const isNew = ({ outcome, service }: ServiceOutcome) =>
    outcome === "started" || (outcome === "unchanged" && !version && !current?.images[service]);
  const started = new Set([
    ...outcomes.filter(isNew).map(({ service }) => service),
    ...replacements.filter(({ old }) => old.length === 0).map(({ on }) => on.service.name),
  ]);
  const services = rollout.services.filter(({ name }) => started.has(name));
  if (services.length === 0) return;
  await adoptLiveFiles(rollout, services);
  for (const service of services) await checkThroughProxy({ ...rollout, service }, [], patient);
}

/** Removes old images of a project. The caller holds its lock. */
export async function pruneImages(request: ComposeOptions & Omit<PruneRequest, "project">): Promise<Pruned> {
  if ((await chooseEngine(request)) === "compose") {
    const [model, images] = await Promise.all([loadModel(request), loadImageNames(request)]);
    const { name } = model;
    const { engine, target } = request;
    const [containers, versions] = [
      await listContainers(engine, name),
      await readVersions(request.versionsPath),
    ];
    await withoutNeighbors(engine, target.projectDirectory, model, containers, versions.at(-1) ?? null);
    return prune({ ...request, project: { name, images } });
  }
  const { project } = await loadStack(request);
  return pruneStack({ ...request, project });
}
