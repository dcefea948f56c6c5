import { inspectImage, namesRegistry, tagByCommit } from "../../platform/docker/image.ts";
import { reportSkipped } from "../report/report.ts";
import { imageIsGone, type Version } from "../versions.ts";
import type { StackRollout } from "./context.ts";
import type { StackService } from "./stack.ts";
import type { LiveImage } from "./stack-images.ts";

/** What the images are chosen from. */
export interface ImageChoice {
  /** The requested services; the others keep their images. */
  readonly services: readonly StackService[];
  readonly live: ReadonlyMap<string, LiveImage>;
  readonly commit: string;
  readonly version: Version | null;
}

/**
 * Chooses for each service an image name that never stands for another image: the name by commit of the built image, or
 * the name that already runs if the build gave the same image, so that Swarm leaves the service alone. A job keeps its
 * image in a roll back, because Swarm would run it again. Services without a name here are deployed as in the stack file.
 */
export async function chooseImages(
  rollout: StackRollout,
  choice: ImageChoice,
): Promise<ReadonlyMap<string, string>> {
  const chosen = new Map<string, string>();
  for (const service of rollout.project.services) {
    const name = choice.services.includes(service)
      ? await chooseImage(rollout, service, choice)
      : choice.live.get(service.name)?.name;
    if (name !== undefined) chosen.set(service.name, name);
  }
  return chosen;
}

async function chooseImage(
  { engine, report }: StackRollout,
  service: StackService,
  { live, commit, version }: ImageChoice,
): Promise<string | undefined> {
  const running = live.get(service.name);
  if (version && running?.isJob) {
    reportSkipped({ report, service });
    return running.name;
  }
  if (version) return imageOfVersion({ engine }, service, version);
  if (!service.isBuilt) return undefined;
  const id = (await inspectImage(engine, service.image))?.id;
  if (id === undefined) return undefined; // Built elsewhere (--no-build): the nodes pull it.
  if (running?.id === id) return running.name;
  const name = await tagByCommit(engine, service.image, id, commit);
  if (name !== running?.name) return name;
  // The stack file names images by commit itself, and this commit gave another image than before.
  return tagByCommit(engine, service.image, id, id.replace("sha256:", ""));
}

/** Services that cannot run twice and are not built here (databases) keep their images: their data may not go back. */
async function imageOfVersion(
  { engine }: Pick<StackRollout, "engine">,
  service: StackService,
  version: Version,
): Promise<string | undefined> {
  const image = version.images[service.name];
  if (!image || (!service.isBuilt && service.replacement.how === "recreate")) return undefined;
  if (namesRegistry(image.tag) || !service.isBuilt || (await inspectImage(engine, image.tag)) !== null) {
    return image.tag;
  }
  throw imageIsGone(service.name, image, version);
}
