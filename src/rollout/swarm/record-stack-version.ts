import { inspectImage } from "../image.ts";
import type { RolloutRequest } from "../request.ts";
import { readVersions, type VersionImage, withReturnTo, withVersion, writeVersions } from "../versions.ts";
import type { StackRollout } from "./context.ts";
import { listServices } from "./swarm-service.ts";

/** Remembers what the stack now runs as a good version, for roll back and for prune. */
export async function recordStackVersion(
  { engine, project }: StackRollout,
  { version, versionsPath }: Pick<RolloutRequest, "version" | "versionsPath">,
  commit: string,
): Promise<void> {
  const versions = await readVersions(versionsPath);
  const finishedAt = new Date().toISOString();
  if (version) return writeVersions(versionsPath, withReturnTo(versions, version, finishedAt));
  const images: Record<string, VersionImage> = {};
  for (const { name, image: tag } of (await listServices(engine, project.name)).values()) {
    const image = project.services.find((service) => service.name === name)?.image ?? tag;
    // On another node only: then its name, which stands for no other image, tells it from others.
    const id = (await inspectImage(engine, tag))?.id ?? tag;
    images[name] = { image, id, tag };
  }
  await writeVersions(versionsPath, withVersion(versions, { commit, finishedAt, images }));
}
