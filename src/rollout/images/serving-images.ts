import { listContainers } from "../../platform/docker/container.ts";
import { isServing } from "../../platform/docker/health.ts";
import { inspectImage, splitReference } from "../../platform/docker/image.ts";
import { commitTag } from "../../platform/docker/tag.ts";
import type { Project } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import type { VersionImage } from "../versions.ts";

/** The images that the services of a compose project now run, by service. */
export async function servingImages({
  engine,
  project,
  own,
}: Pick<Rollout, "engine" | "project" | "own">): Promise<Readonly<Record<string, VersionImage>>> {
  const images: Record<string, VersionImage> = {};
  // One that could not be removed may still be there: what serves counts, and of that the newest.
  const containers = (await listContainers(engine, project.name)).toSorted(
    (one, other) => Number(isServing(other)) - Number(isServing(one)) || other.number - one.number,
  );
  for (const { service, image: imageId, imageName } of containers) {
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
