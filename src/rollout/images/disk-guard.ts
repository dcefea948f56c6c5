import { statfs } from "node:fs/promises";
import { formatSize, parseSizeBytes } from "../../config/size.ts";
import { inspectImage } from "../../platform/docker/image.ts";
import { ProblemError } from "../../problems.ts";
import type { Service } from "../compose/project.ts";
import type { RolloutContext } from "../context.ts";

const gibibyte = 1024 ** 3;

/**
 * Refuses to build where the disk would run full, which would take the running version down with it. Needed is twice
 * the size of the images to build, at least 1 GiB, or what HOTPUSH_MIN_FREE says (`2048 MiB`). With too little,
 * `prune` makes room first.
 *
 * @throws ProblemError `disk_full` with the number that is needed
 */
export async function requireDiskSpace(
  rollout: Pick<RolloutContext, "engine" | "env" | "report">,
  services: readonly Service[],
  prune: () => Promise<void>,
): Promise<void> {
  const neededBytes = configuredBytes(rollout.env) ?? (await estimateBytes(rollout, services));
  const directory = await dockerDirectory(rollout);
  if ((await freeBytes(directory)) >= neededBytes) return;
  rollout.report({
    event: "note",
    service: null,
    text: "The disk is nearly full: old images are removed first.",
  });
  await prune();
  const leftBytes = await freeBytes(directory);
  if (leftBytes >= neededBytes) return;
  throw new ProblemError({
    code: "disk_full",
    detail: `The build needs ${formatSize(neededBytes)} of free disk space for ${directory}, but ${formatSize(leftBytes)} are left after removing old images. Nothing was changed. Free some space, or set HOTPUSH_MIN_FREE.`,
  });
}

function configuredBytes({ HOTPUSH_MIN_FREE: text }: NodeJS.ProcessEnv): number | null {
  if (!text) return null;
  const bytes = parseSizeBytes(text);
  if (bytes !== null) return bytes;
  throw new ProblemError({
    code: "configuration_invalid",
    detail: `HOTPUSH_MIN_FREE is "${text}", not a size such as "2 GiB".`,
  });
}

async function estimateBytes(
  { engine }: Pick<RolloutContext, "engine">,
  services: readonly Service[],
): Promise<number> {
  const images = await Promise.all(services.map(({ image }) => inspectImage(engine, image)));
  const totalBytes = images.reduce((sum, image) => sum + (image?.sizeBytes ?? 0), 0);
  return Math.max(gibibyte, 2 * totalBytes);
}

/** In a container the engine's directory cannot be seen, but the container's own root lies on the same disk. */
async function dockerDirectory({ engine }: Pick<RolloutContext, "engine">): Promise<string> {
  const { DockerRootDir }: { readonly DockerRootDir: string } = JSON.parse(
    (await engine.get("/info")).toString(),
  );
  return statfs(DockerRootDir).then(
    () => DockerRootDir,
    () => "/",
  );
}

async function freeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}
