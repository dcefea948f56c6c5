import type { Container } from "../../platform/docker/container.ts";
import type { Engine } from "../../platform/docker/engine.ts";
import { inspectImage, tagImage } from "../../platform/docker/image.ts";
import { ProblemError } from "../../problems.ts";
import type { Service } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import type { RolloutEvent, ServiceOutcome } from "../report/report.ts";
import { imageIsGone, type Version, type VersionImage } from "../versions.ts";

/**
 * After a failure, gives the images that run their names back: else a later `docker compose up`, or a restart of the
 * machine with it, would bring the version that failed. A service that was recreated stays new, and so does what the name
 * of its image stands for: the next roll-out would else put the old image over the new data. For the same reason, a
 * one-shot service that ran keeps its new image's name, as long as no other service has it.
 */
export async function restoreImageNames(
  { engine }: Pick<Rollout, "engine">,
  services: readonly Service[],
  running: ReadonlyMap<string, readonly Container[]>,
  outcomes: readonly ServiceOutcome[],
): Promise<void> {
  const outcomeOf = ({ name }: Service) => outcomes.find(({ service }) => service === name)?.outcome;
  const kept = services.filter((service) => outcomeOf(service) === "recreated").map(({ image }) => image);
  const returning = services.filter(
    (service) => !kept.includes(service.image) && outcomeOf(service) !== "ran",
  );
  for (const service of returning) {
    const old = (running.get(service.name) ?? []).find(({ imageName }) => imageName === service.image);
    if (!old || service.image.includes("@")) continue;
    const named = await inspectImage(engine, service.image).catch(() => null);
    if (named !== null && named.id !== old.image)
      await tagImage(engine, old.image, service.image).catch(() => {});
  }
}

/**
 * Gives the images of an earlier good version the names in the compose file. Services that are recreated and not built
 * here (databases) keep what they have: their data may not go back. So do services that others await, which are not run,
 * Hotpush itself, whose data may not go back either, and what the file names by its digest, by which no other image can be
 * started; that is told.
 *
 * @throws ProblemError `no_previous_version` where an image is no longer here, or nothing but such services could go back
 */
export async function nameImages(
  { engine, own, report }: Pick<Rollout, "engine" | "own" | "report">,
  services: readonly Service[],
  version: Version,
): Promise<void> {
  const mayReturn = ({ name, isBuilt, replacement }: Service) =>
    name !== own?.service && replacement.how !== "run-once" && (isBuilt || replacement.how !== "recreate");
  const returning = services.filter(mayReturn).flatMap((service) => {
    const image = version.images[service.name];
    return image ? [{ service, image }] : [];
  });
  const named = returning.filter(({ service }) => !isPinned(service));
  for (const { service, image } of named) {
    if ((await inspectImage(engine, image.id)) === null) throw imageIsGone(service.name, image, version);
  }
  const stuck = await changing(
    engine,
    returning.filter(({ service }) => isPinned(service)),
  );
  if (stuck.length > 0 && (await changing(engine, named)).length === 0) throw allPinned(stuck);
  for (const { service } of stuck) report(pinned(service));
  for (const { service, image } of named) {
    await tagImage(engine, image.id, service.image);
    if (!service.isBuilt && image.image !== service.image) report(misnamed(service, image));
  }
}

interface Returning {
  readonly service: Service;
  readonly image: VersionImage;
}

function isPinned({ image }: Service): boolean {
  return image.includes("@");
}

/** Those whose name in the compose file stands for another image than the version had. */
async function changing(engine: Engine, returning: readonly Returning[]): Promise<readonly Returning[]> {
  const now = await Promise.all(returning.map(({ service }) => inspectImage(engine, service.image)));
  return returning.filter(({ image }, index) => now[index]?.id !== image.id);
}

function allPinned(stuck: readonly Returning[]): ProblemError {
  const names = stuck.map(({ service }) => service.name).join(", ");
  const detail = `The compose file names the image of ${names} by its digest, so that no other can be started. To go back, write the digest of before there, commit and push. Nothing was changed.`;
  return new ProblemError({ code: "no_previous_version", detail });
}

function pinned({ name, image }: Service): RolloutEvent {
  const text = `stays: the compose file names its image by the digest, ${image}. To have the one of before, write its digest there`;
  return { event: "note", service: name, text };
}

/** Who rolls out the same name again would else wonder why nothing changes. */
function misnamed({ name, image }: Service, then: VersionImage): RolloutEvent {
  const text = `goes back to ${then.image}, which the name ${image} stands for here from now on. To have the other one again: hotpush rollout --pull`;
  return { event: "note", service: name, text };
}
