import { listContainers } from "../../platform/docker/container.ts";
import { isServing } from "../../platform/docker/health.ts";
import { isInContainer } from "../in-container.ts";
import type { Scene } from "../scene.ts";
import { hotpushServiceOf } from "./own-compose-service.ts";

/** The service's container, where the compose file says that it has one and this is the host. */
export type InCompose =
  | { readonly kind: "serving"; readonly container: string }
  | { readonly kind: "not-serving"; readonly service: string };

/** Behind a proxy the service has no port on the host: Docker is asked for its container. Null: it is no compose service. */
export async function findInCompose({ compose, engine }: Scene): Promise<InCompose | null> {
  const answer = await compose();
  const own = answer.kind === "model" ? hotpushServiceOf(answer.model) : null;
  if (answer.kind !== "model" || own === null || isInContainer()) return null;
  const docker = await engine();
  if (docker.kind !== "answers") return { kind: "not-serving", service: own.name };
  const serving = (await listContainers(docker.engine, answer.model.name, own.name)).find(isServing);
  return serving ? { kind: "serving", container: serving.name } : { kind: "not-serving", service: own.name };
}

/** Whether the service runs, on this machine or in its container. */
export async function isServiceThere(scene: Scene): Promise<boolean> {
  if ((await scene.service()).kind === "hotpush") return true;
  return (await findInCompose(scene))?.kind === "serving";
}

/** Why the state cannot be looked at from the host; null where it can. */
export async function stateIsElsewhere(scene: Scene): Promise<string | null> {
  const found = await findInCompose(scene);
  if (found === null) return null;
  return "it is in the container: docker compose exec hotpush hotpush doctor";
}
