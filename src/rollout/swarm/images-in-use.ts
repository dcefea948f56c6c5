import type { Engine } from "../../platform/docker/engine.ts";
import { inspectImage } from "../../platform/docker/image.ts";
import type { VersionImage } from "../versions.ts";
import { listServices } from "./swarm-service.ts";

/** The images that Swarm may start a task from by itself: of each service's specification, and of the one before it. */
export async function imagesInUse(
  engine: Engine,
  stack: string,
): Promise<readonly Pick<VersionImage, "id" | "tag">[]> {
  const services = [...(await listServices(engine, stack)).values()];
  const names = new Set(services.flatMap(({ image, previousImage }) => [image, previousImage ?? image]));
  const images = await Promise.all(
    [...names].map(async (tag) => ({ tag, id: (await inspectImage(engine, tag))?.id ?? tag })),
  );
  return images;
}
