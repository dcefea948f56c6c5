import { ProblemError } from "../../problems.ts";
import type { Service } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import type { Container } from "../engine/container.ts";
import type { Engine } from "../engine/engine.ts";
import { inspectImage, tagImage } from "../engine/image.ts";
import type { RolloutEvent, ServiceOutcome } from "../report/report.ts";
import type { Version, VersionImage } from "../versions.ts";
import { imageIsGone } from "./image-is-gone.ts";

/**
 * After a failure, gives the images that run their names back: else a later `docker compose up`, or a restart of the
 * machine with it, would bring the version that failed. A service that was recreated stays new, and so does what the name
 * of its image stands for: the next roll-out would else put the old image over the new data.
 */
export async function restoreImageNames(
  { engine }: Pick<Rollout, "engine">,
  services: readonly Service[],
  running: ReadonlyMap<string, readonly Container[]>,
  outcomes: readonly ServiceOutcome[],
): Promise<void> {
  const recreated = outcomes.filter(({ outcome }) => outcome === "recreated").map(({ service }) => service);
  for (const service of services.filter(({ name }) => !recreated.includes(name))) {
    const old = (running.get(service.name) ?? []).find(({ imageName }) => imageName === service.image);
    if (!old || service.image.includes("@")) continue;
    const named = await inspectImage(engine, service.image).catch(() => null);
    if (named !== null && named.id !== old.image)
      await tagImage(engine, old.image, service.image).catch(() => {});
  }
}

/**
 * Gives the images of an earlier good version the names in the compose file. Services that are recreated and not built
 * here (databases) keep what they have: their data may not go back. So does Hotpush itself, whose data may not either.
 *
 * @throws ProblemError `no_previous_version` where an image is no longer here, or cannot be called what the file says
 */
export async function nameImages(
  { engine, own, report }: Pick<Rollout, "engine" | "own" | "report">,
  services: readonly Service[],
  version: Version,
): Promise<void> {
  const mayReturn = ({ name, isBuilt, replacement }: Service) =>
    name !== own?.service && (isBuilt || replacement.how !== "recreate");
  const images = services.filter(mayReturn).flatMap((service) => {
    const image = version.images[service.name];
    return image ? [{ service, image }] : [];
  });
  for (const { service, image } of images) await refuseUnnameable(engine, service, image, version);
  for (const { service, image } of images) {
    if (service.image.includes("@")) continue;
    await tagImage(engine, image.id, service.image);
    if (!service.isBuilt && image.image !== service.image) report(misnamed(service, image));
  }
}

async function refuseUnnameable(
  engine: Engine,
  service: Service,
  image: VersionImage,
  version: Version,
): Promise<void> {
  if ((await inspectImage(engine, image.id)) === null) throw imageIsGone(service.name, image, version);
  // A digest is the image's own: by that name, no other can be started.
  if (!service.image.includes("@") || (await inspectImage(engine, service.image))?.id === image.id) return;
  const detail = `${service.name} had another image then, and the compose file names the one it has now by its digest, ${service.image}. Write the digest of the other one there, commit and push. Nothing was changed.`;
  throw new ProblemError({ code: "no_previous_version", detail });
}

/** Who rolls out the same name again would else wonder why nothing changes. */
function misnamed({ name, image }: Service, then: VersionImage): RolloutEvent {
  const text = `goes back to ${then.image}, which the name ${image} stands for here from now on. To have the other one again: hotpush rollout --pull`;
  return { event: "note", service: name, text };
}
