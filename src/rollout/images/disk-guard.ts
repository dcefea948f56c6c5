import { statfs } from "node:fs/promises";
import { formatSize, parseSizeBytes } from "../../config/size.ts";
import { getJson } from "../../platform/docker/engine.ts";
import { inspectImage } from "../../platform/docker/image.ts";
import { ProblemError } from "../../problems.ts";
import type { RolloutService } from "../compose/project.ts";
import type { RolloutContext } from "../context.ts";
import { note } from "../report/report.ts";

const gibibyte = 1024 ** 3;

/**
 * Refuses to build if the disk would run full, because that would also stop the running version. A build needs twice
 * the size of its images and at least 1 GiB, or the size in HOTPUSH_MIN_FREE (`2048 MiB`). If there is too little,
 * `prune` is tried first.
 *
 * @throws ProblemError `disk_full` with the size that is needed
 */
export async function requireDiskSpace(
  rollout: Pick<RolloutContext, "engine" | "env" | "report">,
  services: readonly RolloutService[],
  prune: () => Promise<unknown>,
): Promise<void> {
  const neededBytes = configuredBytes(rollout.env) ?? (await estimateBytes(rollout, services));
  const directory = await dockerDirectory(rollout);
  if ((await freeBytes(directory)) >= neededBytes) return;
  note(rollout, "The disk is nearly full: old images are removed first.");
  await prune();
  const leftBytes = await freeBytes(directory);
  if (leftBytes >= neededBytes) return;
  const detail = `The build needs ${formatSize(neededBytes)} of free disk space for ${directory}, but ${formatSize(leftBytes)} are left after removing old images. Nothing was changed. Free some space, or set HOTPUSH_MIN_FREE.`;
  throw new ProblemError({ code: "disk_full", detail });
}

function configuredBytes({ HOTPUSH_MIN_FREE: text }: NodeJS.ProcessEnv): number | null {
  if (!text) return null;
  const bytes = parseSizeBytes(text);
  if (bytes !== null) return bytes;
  const detail = `HOTPUSH_MIN_FREE is "${text}", not a size such as "2 GiB".`;
  throw new ProblemError({ code: "configuration_invalid", detail });
}

async function estimateBytes(
  { engine }: Pick<RolloutContext, "engine">,
  services: readonly RolloutService[],
): Promise<number> {
  const images = await Promise.all(services.map(({ image }) => inspectImage(engine, image)));
  const totalBytes = images.reduce((sum, image) => sum + (image?.sizeBytes ?? 0), 0);
  return Math.max(gibibyte, 2 * totalBytes);
}

/** In a container the engine's directory is not visible, but the container's own root is on the same disk. */
async function dockerDirectory({ engine }: Pick<RolloutContext, "engine">): Promise<string> {
  const { DockerRootDir } = await getJson<{ readonly DockerRootDir: string }>(engine, "/info");
  return statfs(DockerRootDir).then(
    () => DockerRootDir,
    () => "/",
  );
}

async function freeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}
