import { listContainers } from "../platform/docker/container.ts";
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
