import { removeContainer } from "../../platform/docker/container.ts";
import type { Engine } from "../../platform/docker/engine.ts";
import { keptByDefault, type Pruned, type PruneRequest, prune } from "../images/prune.ts";
import { keptVersions, readVersions } from "../versions.ts";
import type { Stack } from "./stack.ts";
import { namedImage } from "./stack-versions.ts";
import { listOfStack, readStackState } from "./swarm-service.ts";

/**
 * Removes what roll-outs of this stack left on this node. Swarm keeps the containers of ended tasks, which would keep
 * their images: those containers whose image is not needed are removed first.
 */
export async function pruneStack(
  stack: Stack,
  request: Omit<PruneRequest, "project" | "inUse">,
): Promise<Pruned> {
  const { engine, versionsPath, keep = keptByDefault } = request;
  const inUse = await imagesInUse(engine, stack.name);
  const kept = keptVersions(await readVersions(versionsPath), keep);
  const needed = [...inUse, ...kept.flatMap(({ images }) => Object.values(images))];
  await removeEnded(engine, stack.name, new Set(needed.map(({ id }) => id)));
  const project = { name: stack.name, images: stack.services.map(({ image }) => image) };
  return prune({ ...request, project, inUse });
}

/** The images that Swarm may start a task from by itself: of each service's present and previous specification. */
async function imagesInUse(engine: Engine, stack: string) {
  const services = [...(await readStackState(engine, stack)).values()];
  const names = new Set(services.flatMap(({ image, previousImage }) => [image, previousImage ?? image]));
  return Promise.all([...names].map((tag) => namedImage(engine, tag)));
}

interface EndedContainer {
  readonly Id: string;
  readonly ImageID: string;
}

async function removeEnded(engine: Engine, stack: string, needed: ReadonlySet<string>): Promise<void> {
  const status = ["created", "exited", "dead"];
  const ended = await listOfStack<EndedContainer>(engine, stack, "/containers/json?all=1&", { status });
  for (const { Id, ImageID } of ended) if (!needed.has(ImageID)) await removeContainer(engine, Id);
}
