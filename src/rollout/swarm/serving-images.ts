import { inspectImage } from "../../platform/docker/image.ts";
import type { VersionImage } from "../versions.ts";
import type { StackRollout } from "./context.ts";
import { listServices } from "./swarm-service.ts";

/** The images that the services of a stack now run, by service. */
export async function servingStackImages({
  engine,
  project,
}: StackRollout): Promise<Readonly<Record<string, VersionImage>>> {
  const images: Record<string, VersionImage> = {};
  for (const { name, image: tag } of (await listServices(engine, project.name)).values()) {
    const image = project.services.find((service) => service.name === name)?.image ?? tag;
    // On another node only: then its name, which stands for no other image, tells it from others.
    const id = (await inspectImage(engine, tag))?.id ?? tag;
    images[name] = { image, id, tag };
  }
  return images;
}
