import type { RolloutRequest } from "./request.ts";
import { readVersions, type VersionImage, withReturnTo, withVersion, writeVersions } from "./versions.ts";

/** Remembers what now serves as a good version, for roll back and for prune. `imagesNow` reads the images of it. */
export async function recordVersion(
  { version, versionsPath }: Pick<RolloutRequest, "version" | "versionsPath">,
  commit: string,
  imagesNow: () => Promise<Readonly<Record<string, VersionImage>>>,
): Promise<void> {
  const versions = await readVersions(versionsPath);
  const finishedAt = new Date().toISOString();
  const after = version
    ? withReturnTo(versions, version, finishedAt)
    : withVersion(versions, { commit, finishedAt, images: await imagesNow() });
  await writeVersions(versionsPath, after);
}
