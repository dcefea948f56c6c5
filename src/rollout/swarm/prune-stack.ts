import { removeContainer } from "../../platform/docker/container.ts";
import type { Engine } from "../../platform/docker/engine.ts";
import { type Pruned, prune } from "../images/prune.ts";
import { keptVersions, readVersions, type VersionImage } from "../versions.ts";
import { imagesInUse } from "./images-in-use.ts";
import type { Stack } from "./stack.ts";

export interface StackPruneRequest {
  readonly engine: Engine;
  readonly stack: Stack;
  readonly versionsPath: string;
  readonly keep: number;
}

/**
 * Removes what roll-outs of this stack left on this node. Swarm keeps the containers of ended tasks, which would hold
 * their images: those that do not run and whose image nobody needs go first.
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

async function removeEnded(
  engine: Engine,
  stack: string,
  needed: readonly Pick<VersionImage, "id">[],
): Promise<void> {
  const ids = new Set(needed.map(({ id }) => id));
  const filters = encodeURIComponent(
    JSON.stringify({ label: [`com.docker.stack.namespace=${stack}`], status: ["created", "exited", "dead"] }),
  );
  const ended: readonly { readonly Id: string; readonly ImageID: string }[] = JSON.parse(
    (await engine.get(`/containers/json?all=1&filters=${filters}`)).toString(),
  );
  for (const { Id, ImageID } of ended) if (!ids.has(ImageID)) await removeContainer(engine, Id);
}
