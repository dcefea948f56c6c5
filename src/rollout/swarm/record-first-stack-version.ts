import { isServing } from "../../platform/docker/health.ts";
import { commitTag, splitReference, tagByCommit } from "../../platform/docker/image.ts";
import { firstVersionName, writeFirstVersion } from "../record-version.ts";
import type { VersionImage } from "../versions.ts";
import type { StackRollout } from "./context.ts";
import { pushImages } from "./push-images.ts";
import { containersHere, servingStackImages } from "./stack-images.ts";
import type { Snapshot } from "./task.ts";

/**
 * Like `recordFirstVersion`, for a stack: records what Swarm runs when Hotpush sees the stack for the first time. An image
 * that is built here gets a name by its commit, and is pushed if that contains a registry. It must run on this node, or
 * already have such a name.
 *
 * @throws ProblemError `state_unusable` or `image_push_failed`; nothing was deployed yet
 */
export async function recordFirstStackVersion(rollout: StackRollout, before: Snapshot): Promise<void> {
  if (rollout.current !== null || !isWell(rollout, before)) return;
  const { engine, project } = rollout;
  const here = await containersHere(engine, project.name);
  const commit = await firstVersionName(rollout, [...here.values()].flat().filter(isServing));
  const images = { ...(await servingStackImages(rollout)) };
  for (const { name, image, isBuilt } of project.services) {
    const [container] = here.get(name) ?? [];
    if (!isBuilt || images[name] === undefined || isByCommit(images[name])) continue;
    if (container === undefined) return;
    const tag = await tagByCommit(engine, image, container.image, commit);
    images[name] = { image, id: container.image, tag };
  }
  const built = project.services.flatMap(({ name, isBuilt }) =>
    isBuilt && images[name] ? [images[name].tag] : [],
  );
  await pushImages(rollout, built);
  await writeFirstVersion(rollout, { commit, images });
}

/** Whether a service runs that a roll back would restore, and each service has all its tasks. */
function isWell({ project }: StackRollout, { services }: Snapshot): boolean {
  const present = project.services.flatMap((service) => {
    const now = services.get(service.name);
    const mayReturn = service.isBuilt || service.replacement.how !== "recreate";
    return now && mayReturn && !now.isJob && !service.mayEnd ? [now] : [];
  });
  return present.length > 0 && present.every((now) => now.runningTasks >= Math.max(1, now.desiredTasks));
}

function isByCommit({ tag }: VersionImage): boolean {
  return commitTag.test(splitReference(tag).tag);
}
