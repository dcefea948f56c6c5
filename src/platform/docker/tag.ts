import type { Engine } from "./engine.ts";
import { inspectImage, splitReference, tagImage } from "./image.ts";

/** A tag that a roll-out gave: twelve digits of the commit, and a number where that commit was built more than once. */
export const commitTag = /^[0-9a-f]{12}(?:-\d+)?$/;

/**
 * Names the image `id` after the commit, beside `image` (`shop-app` → `shop-app:9f2c1ab04e77`), so that the next build
 * does not leave it nameless and roll back finds it. A name that another image has already gets a number.
 *
 * @returns the new name
 */
export async function tagByCommit(
  engine: Engine,
  image: string,
  id: string,
  commit: string,
): Promise<string> {
  const { repository } = splitReference(image);
  for (let attempt = 1; ; attempt += 1) {
    const reference = `${repository}:${commit.slice(0, 12)}${attempt === 1 ? "" : `-${attempt}`}`;
    const holder = await inspectImage(engine, reference);
    if (holder?.id === id) return reference;
    if (holder === null) {
      await tagImage(engine, id, reference);
      return reference;
    }
  }
}
