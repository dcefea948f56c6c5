import { type Container, inspectContainer } from "../../platform/docker/container.ts";
import type { Engine } from "../../platform/docker/engine.ts";
import { inspectImage } from "../../platform/docker/image.ts";
import type { SwarmService } from "./swarm-service.ts";

/** What a service runs before the roll-out: the name in its specification, and the image's id where it is here. */
export interface LiveImage {
  readonly name: string;
  readonly id: string | null;
  readonly isJob: boolean;
}

/** Asked before the build, which may take a name away from what runs. */
export async function liveImages(
  engine: Engine,
  services: ReadonlyMap<string, SwarmService>,
): Promise<ReadonlyMap<string, LiveImage>> {
  const live = new Map<string, LiveImage>();
  for (const { name, image, isJob } of services.values()) {
    live.set(name, { name: image, id: (await inspectImage(engine, image))?.id ?? null, isJob });
  }
  return live;
}

/** The running containers of the stack's tasks on this node, by service. */
export async function containersHere(
  engine: Engine,
  stack: string,
): Promise<ReadonlyMap<string, readonly Container[]>> {
  const filters = encodeURIComponent(JSON.stringify({ label: [`com.docker.stack.namespace=${stack}`] }));
  const listed: readonly { readonly Id: string; readonly Labels: Readonly<Record<string, string>> }[] =
    JSON.parse((await engine.get(`/containers/json?filters=${filters}`)).toString());
  const byService = new Map<string, Container[]>();
  for (const { Id, Labels } of listed) {
    const service = (Labels["com.docker.swarm.service.name"] ?? "").slice(stack.length + 1);
    const container = await inspectContainer(engine, Id);
    if (container) byService.set(service, [...(byService.get(service) ?? []), container]);
  }
  return byService;
}
