import { removeContainer } from "../../platform/docker/container.ts";
import type { Engine } from "../../platform/docker/engine.ts";
import { type Pruned, prune } from "../images/prune.ts";
import { keptVersions, readVersions, type VersionImage } from "../versions.ts";
import type { Stack } from "./stack.ts";
import { imagesInUse } from "./stack-images.ts";
import { listOfStack } from "./swarm-service.ts";

export interface StackPruneRequest {
  readonly engine: Engine;
  readonly stack: Stack;
  readonly versionsPath: string;
  readonly keep: number;
}

/**
 * Removes what roll-outs of this stack left on this node. Swarm keeps the containers of ended tasks, which would keep
 * their images: those containers whose image is not needed are removed first.
 */
export async function pruneStack({ engine, stack, versionsPath, keep }: StackPruneRequest): Promise<Pruned> {
  const inUse = await imagesInUse(engine, stack.name);
  const kept = keptVersions(await readVersions(versionsPath), keep).flatMap(({ images }) =>
    Object.values(images),
  );
  await removeEnded(engine, stack.name, [...inUse, ...kept]);
  const project = { name: stack.name, images: stack.services.map(({ image }) => image) };
  return prune({ engine, project, versionsPath, keep, inUse });
}

interface EndedContainer {
  readonly Id: string;
  readonly ImageID: string;
}

async function removeEnded(
  engine: Engine,
  stack: string,
  needed: readonly Pick<VersionImage, "id">[],
): Promise<void> {
  const ids = new Set(needed.map(({ id }) => id));
  const status = ["created", "exited", "dead"];
  const ended = await listOfStack<EndedContainer>(engine, stack, "/containers/json?all=1", { status });
  for (const { Id, ImageID } of ended) if (!ids.has(ImageID)) await removeContainer(engine, Id);
}
