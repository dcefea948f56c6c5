import type { Container } from "../../platform/docker/container.ts";
import type { Engine } from "../../platform/docker/engine.ts";
import { inspectImage, tagImage } from "../../platform/docker/image.ts";
import { ProblemError } from "../../problems.ts";
import type { RolloutService } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import type { RolloutEvent, ServiceOutcome } from "../report/report.ts";
import { imageIsGone, type Version, type VersionImage } from "../versions.ts";

/**
 * After a failure, gives the running images their names back. Otherwise a later `docker compose up`, or a restart of
 * the machine with it, would start the version that failed. A recreated service stays new, and its image keeps the
 * name: otherwise the next roll-out would put the old image over the new data. For the same reason, a one-shot
 * service that ran keeps its new image's name, unless another service shares it.
 */
export async function restoreImageNames(
  { engine }: Pick<Rollout, "engine">,
  services: readonly RolloutService[],
  running: ReadonlyMap<string, readonly Container[]>,
  outcomes: readonly ServiceOutcome[],
): Promise<void> {
  const outcomeOf = ({ name }: RolloutService) => outcomes.find(({ service }) => service === name)?.outcome;
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
 * Gives the images of an earlier good version the names in the compose file. These keep the image they have: services
 * that are recreated and not built here (databases), because their data may not suit an older version; services that
 * others wait for, which a roll back does not run; Hotpush itself, because of its data; and services whose image is
 * named by a digest, which is reported.
 *
 * @throws ProblemError `no_previous_version` if an image was removed, or if only services with a digest could go back
 */
export async function nameImages(
  { engine, own, report }: Pick<Rollout, "engine" | "own" | "report">,
  services: readonly RolloutService[],
  version: Version,
): Promise<void> {
  const mayReturn = ({ name, isBuilt, replacement }: RolloutService) =>
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
  readonly service: RolloutService;
  readonly image: VersionImage;
}

function isPinned({ image }: RolloutService): boolean {
  return image.includes("@");
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

function pinned({ name, image }: RolloutService): RolloutEvent {
  const text = `stays: the compose file names its image by the digest, ${image}. To get the earlier one, write its digest there`;
  return { event: "note", service: name, text };
}

/** Without it, an operator who rolls out the same name again would wonder why nothing changes. */
function misnamed({ name, image }: RolloutService, then: VersionImage): RolloutEvent {
  const text = `goes back to ${then.image}, which the name ${image} stands for here from now on. To get the other one again: hotpush rollout --pull`;
  return { event: "note", service: name, text };
}
