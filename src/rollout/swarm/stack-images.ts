import { type Container, inspectContainer } from "../../platform/docker/container.ts";
import type { Engine } from "../../platform/docker/engine.ts";
import { inspectImage } from "../../platform/docker/image.ts";
import type { VersionImage } from "../versions.ts";
import type { StackRollout } from "./context.ts";
import { listOfStack, listServices, type SwarmService } from "./swarm-service.ts";

/** The image of a service before the roll-out: its name in the specification, and its id if it is on this node. */
export interface LiveImage {
  readonly name: string;
  readonly id: string | null;
  readonly isJob: boolean;
}

/** Reads them before the build, which may take a name from a running image. */
export async function liveImages(
  engine: Engine,
  services: ReadonlyMap<string, SwarmService>,
): Promise<ReadonlyMap<string, LiveImage>> {
  const live = new Map<string, LiveImage>();
  for (const { name, image, isJob } of services.values()) {
    live.set(name, { name: image, id: await idHere(engine, image), isJob });
  }
  return live;
}

/** The images that the services of a stack now run, by service. */
export async function servingStackImages({
  engine,
  project,
}: StackRollout): Promise<Readonly<Record<string, VersionImage>>> {
  const images: Record<string, VersionImage> = {};
  for (const { name, image: tag } of (await listServices(engine, project.name)).values()) {
    const image = project.services.find((service) => service.name === name)?.image ?? tag;
    images[name] = { image, ...(await namedImage(engine, tag)) };
  }
  return images;
}

/** The images that Swarm may start a task from by itself: of each service's present and previous specification. */
export async function imagesInUse(
  engine: Engine,
  stack: string,
): Promise<readonly Pick<VersionImage, "id" | "tag">[]> {
  const services = [...(await listServices(engine, stack)).values()];
  const names = new Set(services.flatMap(({ image, previousImage }) => [image, previousImage ?? image]));
  return Promise.all([...names].map((tag) => namedImage(engine, tag)));
}

/** If the image is only on another node, its name identifies it, because that never stands for another image. */
async function namedImage(engine: Engine, tag: string): Promise<Pick<VersionImage, "id" | "tag">> {
  return { id: (await idHere(engine, tag)) ?? tag, tag };
}

async function idHere(engine: Engine, name: string): Promise<string | null> {
  return (await inspectImage(engine, name))?.id ?? null;
}

interface ListedContainer {
  readonly Id: string;
  readonly Labels: Readonly<Record<string, string>>;
}

/** The running containers of the stack's tasks on this node, by service. */
export async function containersHere(
  engine: Engine,
  stack: string,
): Promise<ReadonlyMap<string, readonly Container[]>> {
  const byService = new Map<string, Container[]>();
  for (const { Id, Labels } of await listOfStack<ListedContainer>(engine, stack, "/containers/json")) {
    const service = (Labels["com.docker.swarm.service.name"] ?? "").slice(stack.length + 1);
    const container = await inspectContainer(engine, Id);
    if (container) byService.set(service, [...(byService.get(service) ?? []), container]);
  }
  return byService;
}
