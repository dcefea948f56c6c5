import {
  inspectImage,
  isNamedByCommit,
  namesRegistry,
  tagByCommit,
  tagImage,
} from "../../platform/docker/image.ts";
import { prepareImages } from "../images/prepare-images.ts";
import { note, reportSkipped } from "../report/report.ts";
import { imageIsGone, type Version } from "../versions.ts";
import { pushImages, type StackImages } from "./deploy-stack.ts";
import { pruneStack } from "./prune-stack.ts";
import type { StackRollout, StackService } from "./stack.ts";
import { containersHere } from "./stack-versions.ts";
import type { StackState } from "./swarm-service.ts";

/**
 * Builds, names and pushes the images of the requested services. Nothing is deployed yet: if this fails, everything
 * serves as before.
 *
 * @returns the image to deploy for each service
 */
export async function prepareStackImages(
  rollout: StackRollout,
  services: readonly StackService[],
  before: StackState,
): Promise<StackImages> {
  const { engine, project, version } = rollout;
  // Read before the build, which may take a name from a running image.
  const live = await readLiveImages(rollout, before);
  if (version) return chooseImages(rollout, services, live);
  const running = await containersHere(engine, project.name);
  const makeRoom = async () => {
    await pruneStack(project, rollout);
  };
  // Each node pulls by itself what is not built here.
  const built = services.filter(({ isBuilt }) => isBuilt);
  try {
    await prepareImages({ ...rollout, withPull: false }, built, running, makeRoom);
    const images = await chooseImages(rollout, services, live);
    const isNew = (name: string) => images.get(name) !== live.get(name)?.name;
    const fresh = built.filter(({ name }) => isNew(name)).map(({ name }) => images.get(name));
    await pushImages(
      rollout,
      fresh.filter((image) => image !== undefined),
    );
    return images;
  } finally {
    // Also after a failure: by then the build may have taken the names in the file.
    await keepFileNames(rollout, built, live);
  }
}

/** The image of a service before the roll-out: its name in the specification, and its id if it is on this node. */
interface LiveImage {
  readonly name: string;
  readonly id: string | null;
  readonly isJob: boolean;
}

type LiveImages = ReadonlyMap<string, LiveImage>;

export async function readLiveImages(
  { engine }: Pick<StackRollout, "engine">,
  before: StackState,
): Promise<LiveImages> {
  const live = new Map<string, LiveImage>();
  for (const { name, image, isJob } of before.values()) {
    live.set(name, { name: image, id: (await inspectImage(engine, image))?.id ?? null, isJob });
  }
  return live;
}

/**
 * Chooses for each service an image name that never stands for another image: the name by commit of the built image, or
 * the name that already runs if the build gave the same image, so that Swarm leaves the service alone. A job keeps its
 * image in a roll back, because Swarm would run it again. Services without a name here are deployed as in the stack file.
 *
 * @param services the requested ones; the others keep their images
 */
export async function chooseImages(
  rollout: StackRollout,
  services: readonly StackService[],
  live: LiveImages,
): Promise<StackImages> {
  const chosen = new Map<string, string>();
  for (const service of rollout.project.services) {
    const running = live.get(service.name);
    const name = services.includes(service) ? await chooseImage(rollout, service, running) : running?.name;
    if (name !== undefined) chosen.set(service.name, name);
  }
  return chosen;
}

async function chooseImage(
  { engine, report, version, commit }: StackRollout,
  service: StackService,
  running: LiveImage | undefined,
): Promise<string | undefined> {
  if (version && running?.isJob) {
    reportSkipped({ report, service });
    return running.name;
  }
  if (version) return imageOfVersion({ engine }, service, version);
  if (!service.isBuilt) return undefined;
  const id = (await inspectImage(engine, service.image))?.id;
  if (id === undefined) return undefined; // Built elsewhere (--no-build): the nodes pull it.
  if (running?.id === id) return running.name;
  const name = await tagByCommit(engine, service.image, id, commit);
  if (name !== running?.name) return name;
  // The stack file names images by commit itself, and this commit gave another image than before.
  return tagByCommit(engine, service.image, id, id.replace("sha256:", ""));
}

/** Services that cannot run twice and are not built here (databases) keep their images: their data may not go back. */
async function imageOfVersion(
  { engine }: Pick<StackRollout, "engine">,
  service: StackService,
  version: Version,
): Promise<string | undefined> {
  const image = version.images[service.name];
  if (!image || (!service.isBuilt && service.replacement.how === "recreate")) return undefined;
  if (namesRegistry(image.tag) || !service.isBuilt || (await inspectImage(engine, image.tag)) !== null) {
    return image.tag;
  }
  throw imageIsGone(service.name, image, version);
}

/**
 * Gives the image names in the stack file back to the running images until the new version is verified. If Swarm, or a
 * `docker stack deploy` by hand, starts a task by such a name, it must not get a version that may be broken.
 */
async function keepFileNames(
  { engine }: StackRollout,
  built: readonly StackService[],
  live: LiveImages,
): Promise<void> {
  for (const { name, image } of built) {
    const id = live.get(name)?.id;
    // A name by commit, which a stack file can use, is never moved.
    if (id && !isNamedByCommit(image)) await tagImage(engine, id, image);
  }
}

/**
 * Gives the image names in the stack file to the new version, which is good, for those who deploy the stack by hand. The
 * new version already serves, so a registry that is down is only noted.
 */
export async function moveFileNames(
  rollout: StackRollout,
  services: readonly StackService[],
  images: StackImages,
): Promise<void> {
  const { engine } = rollout;
  const moved: string[] = [];
  for (const { name, image, isBuilt } of services) {
    const now = images.get(name);
    if (!isBuilt || now === undefined || now === image) continue;
    const next = await inspectImage(engine, now);
    if (next === null || next.id === (await inspectImage(engine, image))?.id) continue;
    await tagImage(engine, next.id, image);
    moved.push(image);
  }
  await pushImages(rollout, moved).catch((error: unknown) => {
    const text = `the new version serves, but: ${error instanceof Error ? error.message : String(error)}`;
    note(rollout, text);
  });
}
