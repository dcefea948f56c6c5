import type { Container, Mount } from "../platform/docker/container.ts";
import type { Service } from "./compose/project.ts";

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
