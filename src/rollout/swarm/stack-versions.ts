import { type Container, inspectContainer } from "../../platform/docker/container.ts";
import type { Engine } from "../../platform/docker/engine.ts";
import { isServing } from "../../platform/docker/health.ts";
import { inspectImage, isNamedByCommit, tagByCommit } from "../../platform/docker/image.ts";
import { firstVersionName, writeFirstVersion } from "../record-version.ts";
import type { VersionImage } from "../versions.ts";
import { pushImages } from "./deploy-stack.ts";
import type { StackRollout } from "./stack.ts";
import { listOfStack, readStackState, type StackState } from "./swarm-service.ts";

/**
 * Like `recordFirstVersion`, for a stack: records what Swarm runs when Hotpush sees the stack for the first time. An image
 * that is built here gets a name by its commit, and is pushed if that contains a registry. It must run on this node, or
 * already have such a name.
 *
 * @throws ProblemError `state_unusable` or `image_push_failed`; nothing was deployed yet
 */
export async function recordFirstStackVersion(rollout: StackRollout, before: StackState): Promise<void> {
  const { engine, project, current } = rollout;
  if (current !== null || !isWell(rollout, before)) return;
  const here = await containersHere(engine, project.name);
  const commit = await firstVersionName(rollout, [...here.values()].flat().filter(isServing));
  const images = { ...(await servingStackImages(rollout, before)) };
  for (const { name, image } of project.services.filter(({ isBuilt }) => isBuilt)) {
    if (images[name] === undefined || isNamedByCommit(images[name].tag)) continue;
    const [container] = here.get(name) ?? [];
    if (container === undefined) return;
    const tag = await tagByCommit(engine, image, container.image, commit);
    images[name] = { image, id: container.image, tag };
  }
  const built = project.services.filter(({ isBuilt }) => isBuilt);
  await pushImages(
    rollout,
    built.flatMap(({ name }) => images[name]?.tag ?? []),
  );
  await writeFirstVersion(rollout, { commit, images });
}

/** Whether a service runs that a roll back would restore, and each service has all its tasks. */
function isWell({ project }: StackRollout, state: StackState): boolean {
  const present = project.services.flatMap((service) => {
    const now = state.get(service.name);
    const mayReturn = service.isBuilt || service.replacement.how !== "recreate";
    return now && mayReturn && !now.isJob && !service.mayEnd ? [now] : [];
  });
  return present.length > 0 && present.every((now) => now.runningTasks >= Math.max(1, now.desiredTasks));
}

/** The images that the services of a stack run, by service. */
export async function servingStackImages(
  { engine, project }: StackRollout,
  state?: StackState,
): Promise<Readonly<Record<string, VersionImage>>> {
  const images: Record<string, VersionImage> = {};
  for (const { name, image: tag } of (state ?? (await readStackState(engine, project.name))).values()) {
    const image = project.services.find((service) => service.name === name)?.image ?? tag;
    images[name] = { image, ...(await namedImage(engine, tag)) };
  }
  return images;
}

/** If the image is only on another node, its name identifies it, because that never stands for another image. */
export async function namedImage(engine: Engine, tag: string): Promise<Pick<VersionImage, "id" | "tag">> {
  return { id: (await inspectImage(engine, tag))?.id ?? tag, tag };
}

interface ListedContainer {
  readonly Id: string;
  readonly Labels: Readonly<Record<string, string>>;
}

/** The running containers of the stack's tasks on this node, by service. */
export async function containersHere(
  engine: Engine,
  stack: string,
): Promise<ReadonlyMap<string, readonly Container[]>> {
  const byService = new Map<string, Container[]>();
  for (const { Id, Labels } of await listOfStack<ListedContainer>(engine, stack, "/containers/json?")) {
    const service = (Labels["com.docker.swarm.service.name"] ?? "").slice(stack.length + 1);
    const container = await inspectContainer(engine, Id);
    if (container) byService.set(service, [...(byService.get(service) ?? []), container]);
  }
  return byService;
}
