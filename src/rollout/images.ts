import { statfs } from "node:fs/promises";
import { formatSize, parseSizeBytes } from "#config/size";
import { buildCommand, complaintOf, pullCommand, runCompose } from "#platform/compose";
import { type Engine, getJson } from "#platform/docker/engine";
import { inspectImage, tagByCommit, tagImage } from "#platform/docker/images";
import { type Argv, hasSucceeded } from "#platform/run-command";
import { ProblemError } from "#problems";
import type { Rollout, RolloutContext, ServiceRollout } from "./context.ts";
import { mayGoBack } from "./plan.ts";
import type { RolloutService } from "./project.ts";
import { note, type RolloutStep, timed } from "./report.ts";
import { imageIsGone, type Version, type VersionImage } from "./versions.ts";

const buildTimeoutMs = 60 * 60_000;

/**
 * Pulls and builds the images of the services and names them after the commit. No container is touched: if this fails,
 * everything serves as before.
 *
 * @param prune called if the disk is too full for the build
 */
export async function prepareImages(
  rollout: RolloutContext,
  services: readonly RolloutService[],
  prune: () => Promise<unknown>,
): Promise<void> {
  const { target, project, withBuild } = rollout;
  const built = services.filter(({ isBuilt }) => isBuilt);
  const pulled = names(await toPull(rollout, services));
  if (pulled.length > 0) await runReported(rollout, "pull", pullCommand(target, pulled), pulled);
  if (!withBuild || built.length === 0) return;
  const builders = buildersOf(project.services, built);
  await requireDiskSpace(rollout, prune);
  await runReported(rollout, "build", buildCommand(target, names(builders)), names(builders));
  await Promise.all(built.map((service) => tagBuilt(rollout, service)));
}

/** The services whose `build` makes the images of `built`: a worker may use the image that the app builds. */
function buildersOf(
  all: readonly RolloutService[],
  built: readonly RolloutService[],
): readonly RolloutService[] {
  return all.filter((service) => service.hasBuild && built.some(({ image }) => image === service.image));
}

/** Missing images are always pulled before anything is touched; the others only with `withPull`. */
async function toPull(
  { engine, withBuild, withPull }: RolloutContext,
  services: readonly RolloutService[],
): Promise<readonly RolloutService[]> {
  // Without a build, a service that shares another's image can pull a missing one for both.
  const pullable = services.filter(({ isBuilt, hasBuild }) => (withBuild ? !isBuilt : !hasBuild));
  const images = await Promise.all(pullable.map(({ image }) => inspectImage(engine, image)));
  return pullable.filter(({ isBuilt }, index) => (withPull && !isBuilt) || images[index] === null);
}

async function tagBuilt(rollout: RolloutContext, service: RolloutService): Promise<void> {
  const { engine, commit } = rollout;
  const image = await inspectImage(engine, service.image);
  if (image === null) {
    const detail = `The build succeeded, but there is no image ${service.image}.`;
    throw new ProblemError({ code: "build_failed", detail });
  }
  const tag = () => tagByCommit(engine, service.image, image.id, commit);
  await timed({ ...rollout, service }, "tag", tag, (name) => name);
}

async function runReported(
  rollout: RolloutContext,
  step: RolloutStep,
  argv: Argv,
  services: readonly string[],
): Promise<void> {
  const onLine = (line: string) => {
    if (line.trim()) rollout.report({ event: "output", step, line });
  };
  const run = async () => {
    const ending = await runCompose(rollout, argv, { timeoutMs: buildTimeoutMs, onLine });
    if (hasSucceeded(ending)) return;
    const text = `The ${step} of ${services.join(", ")} failed: ${complaintOf(step, ending)}. No container was touched.`;
    throw new ProblemError({
      code: step === "pull" ? "image_pull_failed" : "build_failed",
      detail: text,
      evidence: ending.lastLines,
    });
  };
  await timed(rollout, step, run, services.join(", "));
}

function names(services: readonly RolloutService[]): readonly string[] {
  return services.map(({ name }) => name);
}

/**
 * Gives the images of an earlier good version the names in the compose file. These keep the image they have: services
 * that are recreated and not built here (databases), because their data may not suit an older version; services that
 * others wait for, which a roll back does not run; and services whose image is named by a digest, which is reported.
 *
 * @throws ProblemError `no_previous_version` if an image was removed, or if only services with a digest could go back
 */
export async function nameImages(
  { engine, report }: Pick<Rollout, "engine" | "report">,
  services: readonly RolloutService[],
  version: Version,
): Promise<void> {
  const returning = services.flatMap((service) => {
    const image = version.images[service.name];
    return image && mayGoBack(service) ? [{ service, image }] : [];
  });
  const pinned = returning.filter(({ service }) => service.image.includes("@"));
  const named = returning.filter((one) => !pinned.includes(one));
  for (const { service, image } of named) {
    if ((await inspectImage(engine, image.id)) === null) throw imageIsGone(service.name, image, version);
  }
  const stuck = await changing(engine, pinned);
  if (stuck.length > 0 && (await changing(engine, named)).length === 0) throw allPinned(stuck);
  for (const { service } of stuck) {
    const advice = "To get the earlier one, write its digest there";
    const text = `stays: the compose file names its image by the digest, ${service.image}. ${advice}`;
    note({ report, service }, text);
  }
  for (const { service, image } of named) {
    await tagImage(engine, image.id, service.image);
    if (!service.isBuilt && image.image !== service.image) noteMisnamed({ report, service }, image);
  }
}

interface Returning {
  readonly service: RolloutService;
  readonly image: VersionImage;
}

/** Those whose name in the compose file now stands for another image than in the version. */
async function changing(engine: Engine, returning: readonly Returning[]): Promise<readonly Returning[]> {
  const now = await Promise.all(returning.map(({ service }) => inspectImage(engine, service.image)));
  return returning.filter(({ image }, index) => now[index]?.id !== image.id);
}

function allPinned(stuck: readonly Returning[]): ProblemError {
  const names = stuck.map(({ service }) => service.name).join(", ");
  const detail = `The compose file names the image of ${names} by its digest, so no other can be started. To go back, write the earlier digest there, commit and push. Nothing was changed.`;
  return new ProblemError({ code: "no_previous_version", detail });
}

/** Without it, an operator who rolls out the same name again would wonder why nothing changes. */
function noteMisnamed(on: Pick<ServiceRollout, "report" | "service">, then: VersionImage): void {
  const advice = "To get the other one again: hotpush rollout --pull";
  const { image } = on.service;
  note(on, `goes back to ${then.image}, which the name ${image} stands for here from now on. ${advice}`);
}

const gibibyte = 1024 ** 3;

/**
 * Refuses to build if the disk would run full, because that would also stop the running version. A build needs 1 GiB, or the
 * size in HOTPUSH_MIN_FREE (`2048 MiB`). If there is too little, `prune` is tried first.
 *
 * @throws ProblemError `disk_full` with the size that is needed
 */
export async function requireDiskSpace(
  rollout: Pick<RolloutContext, "engine" | "env" | "report">,
  prune: () => Promise<unknown>,
): Promise<void> {
  const neededBytes = configuredBytes(rollout.env) ?? gibibyte;
  const directory = await dockerDirectory(rollout);
  if ((await freeBytes(directory)) >= neededBytes) return;
  note(rollout, "The disk is nearly full: old images are removed first.");
  await prune();
  const leftBytes = await freeBytes(directory);
  if (leftBytes >= neededBytes) return;
  const detail = `A build needs ${formatSize(neededBytes)} of free disk space for ${directory}, but ${formatSize(leftBytes)} are left after removing old images. Nothing was changed. Free some space, or set HOTPUSH_MIN_FREE.`;
  throw new ProblemError({ code: "disk_full", detail });
}

function configuredBytes({ HOTPUSH_MIN_FREE: text }: NodeJS.ProcessEnv): number | null {
  if (!text) return null;
  const bytes = parseSizeBytes(text);
  if (bytes !== null) return bytes;
  const detail = `HOTPUSH_MIN_FREE is "${text}", not a size such as "2 GiB".`;
  throw new ProblemError({ code: "configuration_invalid", detail });
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
