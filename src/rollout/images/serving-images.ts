import type { Project } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { listContainers } from "../engine/container.ts";
import { inspectImage, splitReference } from "../engine/image.ts";
import { commitTag } from "../engine/tag.ts";
import type { VersionImage } from "../versions.ts";

/** The images that the services of a compose project now run, by service. */
export async function servingImages({
  engine,
  project,
  own,
}: Rollout): Promise<Readonly<Record<string, VersionImage>>> {
  const images: Record<string, VersionImage> = {};
  for (const { service, image: imageId, imageName } of await listContainers(engine, project.name)) {
    // The container that this runs in is about to go, for what its image is called now.
    const image = await inspectImage(engine, service === own?.service ? nameOf(project, service) : imageId);
    if (!image || images[service]) continue;
    const tag = image.tags.findLast((name) => commitTag.test(splitReference(name).tag)) ?? imageName;
    images[service] = { image: imageName, id: image.id, tag };
  }
  return images;
}

function nameOf({ services }: Project, name: string): string {
  return services.find((service) => service.name === name)?.image ?? name;
}
