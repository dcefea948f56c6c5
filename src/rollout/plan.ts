import type { Container, Mount } from "../platform/docker/container.ts";
import { hasEndedWell, isServing } from "../platform/docker/health.ts";
import type { Service } from "./compose/project.ts";
import type { LockedRequest } from "./request.ts";

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

/**
 * Where the one container of a service has a volume without a name: a second one beside it would begin with an empty
 * volume, and what is in the first would be lost from sight. One that compose makes in its place takes it over. The label
 * `hotpush.rollout=live` says that there is nothing in it to keep.
 *
 * @returns the volume's path in the container, or null
 */
export function anonymousVolume(
  { replacement }: Pick<Service, "replacement">,
  containers: readonly Container[],
): string | null {
  const [only, ...others] = containers;
  if (replacement.how !== "roll" || replacement.isByLabel || !only || others.length > 0) return null;
  return only.mounts.find(isAnonymous)?.target ?? null;
}

/** The engine names a volume that nobody has named. */
function isAnonymous({ type, name }: Mount): boolean {
  return type === "volume" && /^[0-9a-f]{64}$/.test(name);
}

/** What is known of the one-shot services of a project, by their names. */
export interface OneShots {
  /** A roll back runs none of them: what they changed stays, and an earlier version of them may not know it. */
  readonly isRollBack: boolean;
  /** Those that ran to their end at the commit of the last good version. */
  readonly known: readonly string[];
  /** Those of them for which that is the commit that is rolled out now. */
  readonly ranAtCommit: readonly string[];
}

/** Reads it from the last good version. */
export function oneShotsOf(
  { version, current }: Pick<LockedRequest, "version" | "current">,
  commit: string,
): OneShots {
  const known = current?.ran ?? [];
  // By the digits that images are named by: whoever names the commit need not give more.
  const isSame = current?.commit.slice(0, 12) === commit.slice(0, 12);
  return { isRollBack: version !== null, known, ranAtCommit: isSame ? known : [] };
}
