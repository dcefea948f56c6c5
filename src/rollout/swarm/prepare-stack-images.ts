import { commitTag, inspectImage, splitReference, tagImage } from "../../platform/docker/image.ts";
import { prepareImages } from "../images/prepare-images.ts";
import { keptByDefault } from "../images/prune.ts";
import { chooseImages, type ImageChoice } from "./choose-images.ts";
import type { StackRollout } from "./context.ts";
import { pruneStack } from "./prune-stack.ts";
import { pushImages } from "./push-images.ts";
import type { StackService } from "./stack.ts";
import { containersHere, type LiveImage } from "./stack-images.ts";

/**
 * Builds, names and pushes the images of the requested services. Nothing is deployed yet: if this fails, everything
 * serves as before.
 *
 * @returns the image to deploy for each service
 */
export async function prepareStackImages(
  rollout: StackRollout,
  choice: ImageChoice,
  withBuild: boolean,
): Promise<ReadonlyMap<string, string>> {
  const { services, live, commit } = choice;
  if (choice.version) return chooseImages(rollout, choice);
  const { engine, project: stack, versionsPath } = rollout;
  const running = await containersHere(engine, stack.name);
  const makeRoom = async () => {
    await pruneStack({ engine, stack, versionsPath, keep: keptByDefault });
  };
  try {
    // Each node pulls by itself what is not built here.
    const built = services.filter(({ isBuilt }) => isBuilt);
    await prepareImages(rollout, built, { commit, withBuild, withPull: false, running, prune: makeRoom });
    const images = await chooseImages(rollout, choice);
    await pushImages(rollout, newNames(choice, images));
    return images;
  } finally {
    // Also after a failure: by then the build may have taken the names in the file.
    await keepFileNames(rollout, services, live);
  }
}

function newNames({ services, live }: ImageChoice, images: ReadonlyMap<string, string>): readonly string[] {
  return services.flatMap(({ name, isBuilt }) => {
    const image = images.get(name);
    return isBuilt && image !== undefined && image !== live.get(name)?.name ? [image] : [];
  });
}

/**
 * Gives the image names in the stack file back to the running images until the new version is verified. If Swarm, or a
 * `docker stack deploy` by hand, starts a task by such a name, it must not get a version that may be broken.
 */
async function keepFileNames(
  { engine }: StackRollout,
  services: readonly StackService[],
  live: ReadonlyMap<string, LiveImage>,
): Promise<void> {
  for (const { name, image, isBuilt } of services) {
    const id = live.get(name)?.id;
    // A name by commit, which a stack file can use, is never moved.
    if (isBuilt && id && !commitTag.test(splitReference(image).tag)) await tagImage(engine, id, image);
  }
}

/**
 * Gives the image names in the stack file to the new version, which is good, for those who deploy the stack by hand. The
 * new version already serves, so a registry that is down is only noted.
 */
export async function moveFileNames(
  rollout: StackRollout,
  services: readonly StackService[],
  images: ReadonlyMap<string, string>,
): Promise<void> {
  const moved: string[] = [];
  for (const { name, image, isBuilt } of services) {
    const now = images.get(name);
    if (!isBuilt || now === undefined || now === image) continue;
    const [next, present] = [
      await inspectImage(rollout.engine, now),
      await inspectImage(rollout.engine, image),
    ];
    if (next === null || next.id === present?.id) continue;
    await tagImage(rollout.engine, next.id, image);
    moved.push(image);
  }
  await pushImages(rollout, moved).catch((error: unknown) => {
    const text = `the new version serves, but: ${error instanceof Error ? error.message : String(error)}`;
    rollout.report({ event: "note", service: null, text });
  });
}
