import { type ComposeOptions, loadModel, resolveDigests } from "#platform/compose";
import { findOwnService, inspectImage, listContainers, splitReference } from "#platform/docker/containers";
import type { Engine } from "#platform/docker/engine";
import { mayGoBack, type RolloutService, readProject, withoutOwn } from "./project.ts";

/**
 * The names of the images that DEPLOY_IMAGES watches: those of services that are not built here and that a roll back can
 * bring back, so not of databases. A one-shot service or a worker gets the same image if it names the same. No CI pushes an
 * official image of Docker Hub, whose name has no slash, nor under a digest.
 */
export function watchedImages(services: readonly RolloutService[]): readonly string[] {
  const isOfCi = (image: string) => splitReference(image).repository.includes("/") && !image.includes("@");
  const watched = services.filter(
    (service) => mayGoBack(service) && !service.isBuilt && service.replicas > 0 && isOfCi(service.image),
  );
  return [...new Set(watched.map(({ image }) => image))];
}

/**
 * Finds the watched images of a project of which the registry has another one than what runs here. What does not run is not
 * looked at: somebody has stopped it.
 *
 * @returns each as `name@digest`, with the registry's digest
 * @throws ProblemError `image_pull_failed` if a registry does not say it, `compose_invalid`
 */
export async function findNewImages(
  options: ComposeOptions & { readonly engine: Engine },
): Promise<readonly string[]> {
  const { engine } = options;
  const whole = readProject(await loadModel(options));
  const own = await findOwnService(engine);
  const project = withoutOwn(whole, own?.project === whole.name ? own.service : null);
  const watched = watchedImages(project.services);
  if (watched.length === 0) return [];
  const resolved = await resolveDigests(options, watched);
  const containers = await listContainers(engine, project.name);
  const found: string[] = [];
  for (const image of resolved) {
    const [name = "", digest = ""] = image.split("@");
    const running = containers.filter(({ status, imageName }) => status === "running" && imageName === name);
    const images = await Promise.all(running.map((container) => inspectImage(engine, container.image)));
    const isOther = images.some((one) => !one?.digests.some((known) => known.endsWith(`@${digest}`)));
    if (isOther) found.push(image);
  }
  return found;
}
