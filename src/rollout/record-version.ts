import { ProblemError } from "../problems.ts";
import type { LockedRequest } from "./request.ts";
import { readVersions, type VersionImage, withReturnTo, withVersion, writeVersions } from "./versions.ts";

/**
 * Remembers what now serves as a good version, for roll back and for prune. `imagesNow` reads the images of it; `ran` are
 * the one-shot services that ran to their end at this commit.
 *
 * @throws ProblemError `state_unusable`, which says that the version serves all the same
 */
export async function recordVersion(
  request: Pick<LockedRequest, "version" | "versionsPath">,
  commit: string,
  imagesNow: () => Promise<Readonly<Record<string, VersionImage>>>,
  ran: readonly string[] = [],
): Promise<void> {
  try {
    await record(request, commit, imagesNow, ran);
  } catch (error) {
    if (!(error instanceof ProblemError) || error.problem.code !== "state_unusable") throw error;
    const detail = `The version ${commit.slice(0, 12)} serves, but it could not be recorded as a good one: ${error.message} Then roll out again: without that, it cannot be gone back to.`;
    throw new ProblemError({ code: "state_unusable", detail }, error);
  }
}

async function record(
  { version, versionsPath }: Pick<LockedRequest, "version" | "versionsPath">,
  commit: string,
  imagesNow: () => Promise<Readonly<Record<string, VersionImage>>>,
  ran: readonly string[],
): Promise<void> {
  const versions = await readVersions(versionsPath);
  const finishedAt = new Date().toISOString();
  const after = version
    ? withReturnTo(versions, version, finishedAt)
    : withVersion(versions, { commit, finishedAt, images: await imagesNow(), ran });
  await writeVersions(versionsPath, after);
}
