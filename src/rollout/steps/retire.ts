import type { Service } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { type Container, removeContainer, stopContainer } from "../engine/container.ts";
import { timed } from "../report/report.ts";

/**
 * Stops and removes old containers that no request reaches any more.
 *
 * @param longestGraceS - the most seconds between SIGTERM and SIGKILL, where a container's own stop grace period is longer
 */
export async function retire(
  { engine, report }: Rollout,
  service: Service,
  containers: readonly Container[],
  longestGraceS: number,
): Promise<void> {
  if (containers.length === 0) return;
  const names = containers.map(({ name }) => name).join(", ");
  const stopAndRemove = (container: Container) =>
    stopContainer(engine, container, longestGraceS).then(() => removeContainer(engine, container.id));
  const stop = () => Promise.all(containers.map(stopAndRemove));
  await timed(report, service.name, "stop", stop, () => `${names} stopped and removed`);
}
