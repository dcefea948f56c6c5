import { prepareImages } from "../images/prepare-images.ts";
import { keptByDefault } from "../images/prune.ts";
import { lockInTurn } from "../lock.ts";
import { recordVersion } from "../record-version.ts";
import { timed } from "../report/report.ts";
import { type LockedRequest, lockedRequest, type RolloutRequest } from "../request.ts";
import type { RolloutEnding } from "../rollout.ts";
import { commitToTag, failed, selectServices } from "../with-rollout.ts";
import { chooseImages } from "./choose-images.ts";
import type { StackRollout } from "./context.ts";
import { keepFileNames, moveFileNames } from "./file-names.ts";
import { healStack } from "./heal-stack.ts";
import { containersHere, type LiveImage, liveImages } from "./live-images.ts";
import { findOwnTask, type OwnTask } from "./own-task.ts";
import { pruneStack } from "./prune-stack.ts";
import { pushImages } from "./push-images.ts";
import { loadStack } from "./read-stack.ts";
import { recordFirstStackVersion } from "./record-first-version.ts";
import { namesRegistry } from "./registry.ts";
import { requireManager } from "./require-manager.ts";
import { servingStackImages } from "./serving-images.ts";
import { takeSnapshot } from "./snapshot.ts";
import type { StackService } from "./stack.ts";
import { takenBack } from "./update-policy.ts";
import { updateServices } from "./update-services.ts";

/**
 * Brings a stack to what its file and its sources now say: lock, build and name by commit, push, `docker stack deploy`,
 * then wait for what Swarm makes of it; Hotpush itself comes last. Where one service fails, the old versions of all serve.
 */
export async function rollOutStack(asked: RolloutRequest): Promise<RolloutEnding> {
  try {
    const lock = await lockInTurn(asked);
    try {
      const request = await lockedRequest(asked);
      const commit = await commitToTag(request);
      const nodes = await requireManager(request.engine);
      const rollout = await open(request, lock.descriptor, commit);
      return await rollOutAs(rollout, request, commit, nodes);
    } finally {
      await lock.release();
    }
  } catch (error) {
    return failed(asked, error);
  }
}

async function open(request: RolloutRequest, lockDescriptor: number, commit: string): Promise<StackRollout> {
  const { engine, target, env, report, signal, statePath, lockPath } = request;
  const read = () => loadStack({ env, signal, target, lockDescriptor }, commit);
  const { result } = await timed(report, null, "read", read, ({ stack }) => `stack ${stack.name}`);
  const { stack, surroundings } = result;
  const task = await findOwnTask(engine);
  const own = task?.stack === stack.name ? task : null;
  const onlyOfCompose = {
    configHashes: Promise.resolve(new Map()),
    liveDirectory: null,
    liveFilesRead: null,
  };
  return {
    ...surroundings,
    engine,
    project: { ...stack, services: stack.services.map((service) => withOwnPolicy(service, own)) },
    own,
    ...onlyOfCompose,
    statePath,
    lockPath,
    report,
    lockDescriptor,
  };
}

function withOwnPolicy(service: StackService, own: OwnTask | null): StackService {
  return service.name === own?.service ? { ...service, update: takenBack(service.update) } : service;
}

async function rollOutAs(
  rollout: StackRollout,
  request: LockedRequest,
  commit: string,
  nodes: number,
): Promise<RolloutEnding> {
  const startedMs = performance.now();
  const { report, project } = rollout;
  const services = selectServices(project, request.services);
  report({ event: "started", project: project.name, commit, services: services.map(({ name }) => name) });
  warn(rollout, services, nodes);
  await healStack(rollout);
  const before = await takeSnapshot(rollout.engine, project.name);
  await recordFirstStackVersion(rollout, request, before);
  const live = await liveImages(rollout.engine, before.services);
  const images = await bringImages(rollout, request, services, live, commit);
  const outcomes = await updateServices(rollout, { images, withPull: request.withPull }, before);
  await recordVersion(request, commit, () => servingStackImages(rollout));
  await nameAsInFile(rollout, services, images);
  const durationMs = Math.round(performance.now() - startedMs);
  report({ event: "finished", durationMs, services: outcomes });
  return { kind: "succeeded", commit, services: outcomes };
}

function warn({ report, project }: StackRollout, services: readonly StackService[], nodes: number): void {
  for (const { name, update, isBuilt, image } of project.services) {
    for (const text of update.warnings) report({ event: "note", service: name, text });
    if (nodes === 1 || !isBuilt || namesRegistry(image)) continue;
    const text = `the image ${image} names no registry, so that only this one of ${nodes} nodes has it`;
    report({ event: "note", service: name, text });
  }
  if (services.length < project.services.length) {
    const text =
      "the services that were not named keep their images; what else the file says of them is deployed";
    report({ event: "note", service: null, text });
  }
}

/** Nothing is deployed yet: where this fails, everything serves as before. */
async function bringImages(
  rollout: StackRollout,
  request: LockedRequest,
  services: readonly StackService[],
  live: ReadonlyMap<string, LiveImage>,
  commit: string,
): Promise<ReadonlyMap<string, string>> {
  const { version, withBuild, versionsPath } = request;
  const choice = { services, live, commit, version };
  if (version) return chooseImages(rollout, choice);
  const { engine, project: stack } = rollout;
  const running = await containersHere(engine, stack.name);
  const makeRoom = async () => {
    await pruneStack({ engine, stack, versionsPath, keep: keptByDefault });
  };
  try {
    // What is not built here, each node gets for itself.
    const built = services.filter(({ isBuilt }) => isBuilt);
    await prepareImages(rollout, built, { commit, withBuild, withPull: false, running, prune: makeRoom });
    const images = await chooseImages(rollout, choice);
    await pushImages(rollout, newNames(services, images, live));
    return images;
  } finally {
    // Also where it failed: by then the build may have taken the names in the file.
    await keepFileNames(rollout, services, live);
  }
}

function newNames(
  services: readonly StackService[],
  images: ReadonlyMap<string, string>,
  live: ReadonlyMap<string, LiveImage>,
): readonly string[] {
  return services.flatMap(({ name, isBuilt }) => {
    const image = images.get(name);
    return isBuilt && image !== undefined && image !== live.get(name)?.name ? [image] : [];
  });
}

/** For those who deploy the stack by hand; the new version serves already, so a registry that is away fails nothing. */
async function nameAsInFile(
  rollout: StackRollout,
  services: readonly StackService[],
  images: ReadonlyMap<string, string>,
): Promise<void> {
  const moved = await moveFileNames(rollout, services, images);
  await pushImages(rollout, moved).catch((error: unknown) => {
    const text = `the new version serves, but: ${error instanceof Error ? error.message : String(error)}`;
    rollout.report({ event: "note", service: null, text });
  });
}
