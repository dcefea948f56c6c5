import type { Container, ContainerMount } from "#platform/docker/containers";
import { hasEndedWell, isServing } from "#platform/docker/health";
import type { Containers, RolloutContext, ServiceRollout } from "./context.ts";
import type { RolloutService } from "./project.ts";

/** What a roll-out does with a service. */
export type Action =
  | { readonly kind: "leave" }
  | { readonly kind: "start" }
  | { readonly kind: "roll" }
  | { readonly kind: "recreate"; readonly reason: string }
  | { readonly kind: "run" }
  | { readonly kind: "skip" };

/** The image and configuration of a container that is up to date. */
export interface UpToDate {
  /** Null if the image is not on this machine yet: compose will pull it. */
  readonly imageId: string | null;
  /** The `config-hash` label is one of them. */
  readonly configHashes: readonly string[];
}

/**
 * Compares the containers of `service`, which has at least one replica, with the compose file and the image as they
 * are now.
 */
export function planService(
  on: Planned,
  containers: Containers,
  { imageId, configHashes }: UpToDate,
): Action {
  const isCurrent = (container: Container) =>
    configHashes.includes(container.configHash) && container.image === imageId;
  return planOneShot(on, containers, isCurrent) ?? planLasting(on.service, containers, isCurrent);
}

type Planned = Pick<ServiceRollout, "service" | "version" | "current" | "commit">;

/**
 * A one-shot service runs in each roll-out of a new commit, as with `docker compose up`: it may read files of the
 * repository. If no other service waits for it, it is recognized by its earlier runs, and started like any other.
 */
function planOneShot(
  on: Planned,
  containers: Containers,
  isCurrent: (container: Container) => boolean,
): Action | null {
  const { name, replacement } = on.service;
  const { known, ranAtCommit } = oneShotsOf(on);
  const isAwaited = replacement.how === "run-once";
  const isOver = containers.length > 0 && containers.every(hasEndedWell);
  if (!isAwaited && !(isOver && known.includes(name))) return null;
  // Their changes stay, and an earlier version of them may not know those.
  if (on.version !== null) return { kind: "skip" };
  if (isOver && ranAtCommit.includes(name) && containers.every(isCurrent)) return { kind: "leave" };
  return isAwaited ? { kind: "run" } : null;
}

function planLasting(
  service: RolloutService,
  containers: Containers,
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

/**
 * The anonymous volume of a service's only container. A second container beside it would start with an empty volume,
 * and the data of the first would be lost from sight. A container that compose recreates keeps the volume. The label
 * `hotpush.rollout=live` declares that it holds nothing to keep.
 *
 * @returns the volume's path in the container, or null
 */
export function anonymousVolume(
  { replacement }: Pick<RolloutService, "replacement">,
  containers: Containers,
): string | null {
  const [only, ...others] = containers;
  if (replacement.how !== "roll" || replacement.isByLabel || !only || others.length > 0) return null;
  return only.mounts.find(isAnonymous)?.target ?? null;
}

/** The engine generates the name of a volume that has none. */
function isAnonymous({ type, name }: ContainerMount): boolean {
  return type === "volume" && /^[0-9a-f]{64}$/.test(name);
}

/** The one-shot services that ran to their end at the commit of the last good version; none at this one if it is another. */
export function oneShotsOf({ current, commit }: Pick<RolloutContext, "current" | "commit">) {
  const known = current?.ran ?? [];
  // Compares the digits in image names: a given commit may be shortened to those.
  const isSame = current?.commit.slice(0, 12) === commit.slice(0, 12);
  return { known, ranAtCommit: isSame ? known : [] };
}

/** Whether a roll back changes the image of a service: not of a one-shot service or a database. */
export function mayGoBack({ isBuilt, replacement: { how } }: RolloutService): boolean {
  return how !== "run-once" && (isBuilt || how !== "recreate");
}
