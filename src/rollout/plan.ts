import { anonymousVolume } from "./anonymous-volume.ts";
import type { Service } from "./compose/project.ts";
import type { Container } from "./engine/container.ts";
import { isServing } from "./engine/health.ts";

/** What is to be done with a service. */
export type Action =
  | { readonly kind: "leave" }
  | { readonly kind: "start" }
  | { readonly kind: "roll" }
  | { readonly kind: "recreate"; readonly reason: string }
  | { readonly kind: "run" };

/** What a container of a service that is up to date is made of. */
export interface UpToDate {
  /** Null where the image is not here yet: compose will pull it. */
  readonly imageId: string | null;
  /** One of them is its `config-hash` label. */
  readonly configHashes: readonly string[];
}

/** Compares the containers of `service`, of which at least one is wanted, with what the compose file and the image now say. */
export function planService(
  service: Service,
  containers: readonly Container[],
  { imageId, configHashes }: UpToDate,
): Action {
  const isCurrent = (container: Container) =>
    configHashes.includes(container.configHash) && container.image === imageId;
  const { replacement } = service;
  if (replacement.how === "run-once") {
    const hasRun = containers.some((container) => isCurrent(container) && hasEndedWell(container));
    return { kind: hasRun ? "leave" : "run" };
  }
  const running = containers.filter(({ status }) => status === "running");
  const isComplete = running.length === service.replicas && running.every(isCurrent);
  if (replacement.how === "recreate") {
    return isComplete ? { kind: "leave" } : { kind: "recreate", reason: replacement.reason };
  }
  if (running.length === 0) return { kind: "start" };
  if (isComplete && running.every(isServing)) return { kind: "leave" };
  const volume = anonymousVolume(service, running);
  if (volume === null) return { kind: "roll" };
  return isComplete ? { kind: "leave" } : { kind: "recreate", reason: `anonymous volume ${volume}` };
}

function hasEndedWell({ status, exitCode }: Container): boolean {
  return status === "exited" && exitCode === 0;
}
