import type { Container } from "../platform/docker/container.ts";
import { hasEndedWell, isServing } from "../platform/docker/health.ts";
import { anonymousVolume } from "./anonymous-volume.ts";
import type { Service } from "./compose/project.ts";
import type { OneShots } from "./one-shots.ts";

/** What is to be done with a service. */
export type Action =
  | { readonly kind: "leave" }
  | { readonly kind: "start" }
  | { readonly kind: "roll" }
  | { readonly kind: "recreate"; readonly reason: string }
  | { readonly kind: "run" }
  | { readonly kind: "skip" };

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
  oneShots: OneShots,
): Action {
  const isCurrent = (container: Container) =>
    configHashes.includes(container.configHash) && container.image === imageId;
  return planOneShot(service, containers, isCurrent, oneShots) ?? planLasting(service, containers, isCurrent);
}

/**
 * A one-shot service runs in each roll-out of a new commit, as `docker compose up` would run it: the files that it reads
 * may lie in the repository. One that nobody awaits is known by what it did before, and is started like any other.
 */
function planOneShot(
  { name, replacement }: Service,
  containers: readonly Container[],
  isCurrent: (container: Container) => boolean,
  { isRollBack, known, ranAtCommit }: OneShots,
): Action | null {
  const isAwaited = replacement.how === "run-once";
  const isOver = containers.length > 0 && containers.every(hasEndedWell);
  if (!isAwaited && !(isOver && known.includes(name))) return null;
  if (isRollBack) return { kind: "skip" };
  if (isOver && ranAtCommit.includes(name) && containers.every(isCurrent)) return { kind: "leave" };
  return isAwaited ? { kind: "run" } : null;
}

function planLasting(
  service: Service,
  containers: readonly Container[],
  isCurrent: (container: Container) => boolean,
): Action {
  const { replacement } = service;
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
