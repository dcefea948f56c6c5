import { type Container, listContainers } from "../platform/docker/container.ts";
import { hasEndedWell } from "../platform/docker/health.ts";
import type { RolloutService } from "./compose/project.ts";
import type { Rollout } from "./context.ts";

/**
 * Warns about containers whose service is no longer in the compose file. They are left alone: another compose file,
 * or a profile, may still have it.
 */
export async function warnAboutOrphans({ engine, project, report }: Rollout): Promise<void> {
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
 * Warns about a service that is up to date but not healthy: an earlier roll-out may have been cut off while it
 * waited. If two containers can run, such a service is replaced instead.
 */
export function warnIfUnhealthy(
  { report }: Pick<Rollout, "report">,
  { name }: RolloutService,
  containers: readonly Container[],
): void {
  const lasting = containers.filter((container) => !hasEndedWell(container));
  const sick = lasting.find(({ health }) => health !== null && health !== "healthy");
  if (!sick) return;
  const text = `is as it should be, but not healthy (${sick.health}). See: docker logs ${sick.name}`;
  report({ event: "note", service: name, text });
}
