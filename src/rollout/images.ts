import { existsSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { formatSize, parseSizeBytes } from "#config/size";
import { buildCommand, complaintOf, pullCommand, runCompose } from "#platform/compose";
import { getJson } from "#platform/docker/engine";
import { inspectImage, tagByCommit, tagImage } from "#platform/docker/images";
import { type Argv, hasSucceeded } from "#platform/run-command";
import { ProblemError } from "#problems";
import type { Rollout, RolloutContext } from "./context.ts";
import { mayGoBack } from "./plan.ts";
import type { RolloutService } from "./project.ts";
import { note, type RolloutStep, timed } from "./report.ts";
import { imageIsGone, type Version } from "./versions.ts";

const buildTimeoutMs = 60 * 60_000;

/**
 * Pulls and builds the images of the services and names them after the commit. No container is touched: if this fails,
 * everything serves as before.
 */
export async function prepareImages(
  rollout: RolloutContext,
  services: readonly RolloutService[],
): Promise<void> {
  const { target, project, withBuild } = rollout;
  const built = services.filter(({ isBuilt }) => isBuilt);
  const pulled = names(await toPull(rollout, services));
  if (pulled.length > 0) await runReported(rollout, "pull", pullCommand(target, pulled), pulled);
  if (!withBuild || built.length === 0) return;
  const builders = buildersOf(project.services, built);
  await requireDiskSpace(rollout);
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
 * @throws ProblemError `no_previous_version` if an image was removed
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
  const named = returning.filter(({ service }) => !service.image.includes("@"));
  for (const { service, image } of named)
    if ((await inspectImage(engine, image.id)) === null) throw imageIsGone(service.name, image, version);
  for (const { service, image } of returning) {
    const { image: name, isBuilt } = service;
    const isPinned = name.includes("@");
    if (isPinned && image.image !== name)
      note({ report, service }, `stays: the compose file names its image by the digest, ${name}`);
    if (isPinned) continue;
    await tagImage(engine, image.id, name);
    // Without it, an operator who rolls out the same name again would wonder why nothing changes.
    const text = `goes back to ${image.image}, which the name ${name} stands for here from now on. To get the other one again: hotpush rollout --pull`;
    if (!isBuilt && image.image !== name) note({ report, service }, text);
  }
}

const gibibyte = 1024 ** 3;

/**
 * Refuses to build if the disk would run full, because that would also stop the running version. A build needs 1 GiB, or the
 * size in HOTPUSH_MIN_FREE (`2048 MiB`).
 *
 * @throws ProblemError `disk_full` with the size that is needed
 */
export async function requireDiskSpace({
  engine,
  env,
}: Pick<RolloutContext, "engine" | "env">): Promise<void> {
  const { HOTPUSH_MIN_FREE: text } = env;
  const neededBytes = text ? parseSizeBytes(text) : gibibyte;
  if (neededBytes === null) {
    const detail = `HOTPUSH_MIN_FREE is "${text}", not a size such as "2 GiB".`;
    throw new ProblemError({ code: "configuration_invalid", detail });
  }
  const { DockerRootDir } = await getJson<{ readonly DockerRootDir: string }>(engine, "/info");
  // In a container the engine's directory is not visible, but the container's own root is on the same disk.
  const directory = existsSync(DockerRootDir) ? DockerRootDir : "/";
  const { bavail, bsize } = await statfs(directory);
  if (bavail * bsize >= neededBytes) return;
  const detail = `A build needs ${formatSize(neededBytes)} of free disk space for ${directory}, but ${formatSize(bavail * bsize)} are left. Nothing was changed. Free some space (hotpush prune), or set HOTPUSH_MIN_FREE.`;
  throw new ProblemError({ code: "disk_full", detail });
}
