import { listContainers } from "./container.ts";
import type { Rollout } from "./context.ts";
import { inspectImage, splitReference } from "./image.ts";
import type { Project } from "./project.ts";
import type { RolloutRequest } from "./request.ts";
import { commitTag } from "./tag.ts";
import { readVersions, type VersionImage, withReturnTo, withVersion, writeVersions } from "./versions.ts";

/** Remembers what now serves as a good version, for roll back and for prune. */
export async function recordVersion(
  { engine, project, own }: Rollout,
  { version, versionsPath }: Pick<RolloutRequest, "version" | "versionsPath">,
  commit: string,
): Promise<void> {
  const versions = await readVersions(versionsPath);
  const finishedAt = new Date().toISOString();
  if (version) return writeVersions(versionsPath, withReturnTo(versions, version, finishedAt));
  const images: Record<string, VersionImage> = {};
  for (const { service, image: imageId, imageName } of await listContainers(engine, project.name)) {
    // The container that this runs in is about to go, for what its image is called now.
    const image = await inspectImage(engine, service === own?.service ? nameOf(project, service) : imageId);
    if (!image || images[service]) continue;
    const tag = image.tags.findLast((name) => commitTag.test(splitReference(name).tag)) ?? imageName;
    images[service] = { image: imageName, id: image.id, tag };
  }
  await writeVersions(versionsPath, withVersion(versions, { commit, finishedAt, images }));
}

function nameOf({ services }: Project, name: string): string {
  return services.find((service) => service.name === name)?.image ?? name;
}
