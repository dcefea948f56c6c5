import { type Container, listContainers } from "../platform/docker/container.ts";
import { hasEndedWell } from "../platform/docker/health.ts";
import type { Service } from "./compose/project.ts";
import type { Rollout } from "./context.ts";

/**
 * Tells of containers whose service the compose file no longer has. They are left alone: another compose file, or a
 * profile, may still have it.
 */
export async function tellRemoved({ engine, project, report }: Rollout): Promise<void> {
  const known = new Set(project.services.map(({ name }) => name));
  const containers = await listContainers(engine, project.name);
  const left = Map.groupBy(
    containers.filter(({ service }) => !known.has(service)),
    ({ service }) => service,
  );
  for (const [service, mine] of left) {
    const names = mine.map(({ name }) => name).join(" ");
    const text = `is not in the compose file, but has containers. If it is gone for good: docker rm --force ${names}`;
    report({ event: "note", service, text });
  }
}

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
