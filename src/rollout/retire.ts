import { type Container, removeContainer, stopContainer } from "./container.ts";
import type { Rollout } from "./context.ts";
import type { Service } from "./project.ts";
import { timed } from "./report.ts";

/**
 * Stops and removes old containers that no request reaches any more.
 *
 * @param graceS - seconds between SIGTERM and SIGKILL, or null for each container's own stop grace period
 */
export async function retire(
  { engine, report }: Rollout,
  service: Service,
  containers: readonly Container[],
  graceS: number | null,
): Promise<void> {
  if (containers.length === 0) return;
  const names = containers.map(({ name }) => name).join(", ");
  const stopAndRemove = (id: string) =>
    stopContainer(engine, id, graceS).then(() => removeContainer(engine, id));
  const stop = () => Promise.all(containers.map(({ id }) => stopAndRemove(id)));
  await timed(report, service.name, "stop", stop, () => `${names} stopped and removed`);
}
