import { commitTag, inspectImage, splitReference, tagImage } from "../../platform/docker/image.ts";
import type { StackRollout } from "./context.ts";
import type { LiveImage } from "./live-images.ts";
import type { StackService } from "./stack.ts";

/**
 * Gives the image names in the stack file back to what serves, until the new version is proved: a task that is started
 * by such a name, by Swarm or by a `docker stack deploy` by hand, must not get a version that may be sick.
 */
export async function keepFileNames(
  { engine }: StackRollout,
  services: readonly StackService[],
  live: ReadonlyMap<string, LiveImage>,
): Promise<void> {
  for (const { name, image, isBuilt } of services) {
    const id = live.get(name)?.id;
    // A name by commit, which a stack file can ask for, is never moved.
    if (isBuilt && id && !commitTag.test(splitReference(image).tag)) await tagImage(engine, id, image);
  }
}

/**
 * The new version is good: the names in the stack file stand for it from now on.
 *
 * @returns the names that were moved
 */
export async function moveFileNames(
  { engine }: StackRollout,
  services: readonly StackService[],
  chosen: ReadonlyMap<string, string>,
): Promise<readonly string[]> {
  const moved: string[] = [];
  for (const { name, image, isBuilt } of services) {
    const now = chosen.get(name);
    if (!isBuilt || now === undefined || now === image) continue;
    const [next, present] = [await inspectImage(engine, now), await inspectImage(engine, image)];
    if (next === null || next.id === present?.id) continue;
    await tagImage(engine, next.id, image);
    moved.push(image);
  }
  return moved;
}
