import type { Container } from "../platform/docker/container.ts";
import { hasEndedWell } from "../platform/docker/health.ts";
import type { Service } from "./compose/project.ts";
import type { Rollout } from "./context.ts";

/**
 * Tells of a service that is not to be changed, and yet is not well: a roll-out before this one may have been cut off
 * while it waited. Where two can run, such a service is replaced instead.
 */
export function tellUnhealthy(
  { report }: Pick<Rollout, "report">,
  { name }: Service,
  containers: readonly Container[],
): void {
  const lasting = containers.filter((container) => !hasEndedWell(container));
  const sick = lasting.find(({ health }) => health !== null && health !== "healthy");
  if (!sick) return;
  const text = `is as it should be, but not healthy (${sick.health}). See: docker logs ${sick.name}`;
  report({ event: "note", service: name, text });
}
