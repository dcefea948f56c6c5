import type { Engine } from "../../platform/docker/engine.ts";
import { inspectImage, tagImage } from "../../platform/docker/image.ts";
import { ProblemError } from "../../problems.ts";
import type { RolloutService } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { note, type ReportScope } from "../report/report.ts";
import { imageIsGone, type Version, type VersionImage } from "../versions.ts";

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
  for (const { service } of stuck) notePinned({ report, service }, service);
  for (const { service, image } of named) {
    await tagImage(engine, image.id, service.image);
    if (!service.isBuilt && image.image !== service.image) noteMisnamed({ report, service }, service, image);
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

function notePinned(scope: ReportScope, { image }: RolloutService): void {
  const advice = "To get the earlier one, write its digest there";
  note(scope, `stays: the compose file names its image by the digest, ${image}. ${advice}`);
}

/** Without it, an operator who rolls out the same name again would wonder why nothing changes. */
function noteMisnamed(scope: ReportScope, { image }: RolloutService, then: VersionImage): void {
  const advice = "To get the other one again: hotpush rollout --pull";
  note(scope, `goes back to ${then.image}, which the name ${image} stands for here from now on. ${advice}`);
}
