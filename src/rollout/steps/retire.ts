import type { Service } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import type { Container } from "../engine/container.ts";
import { discardContainers, keptText } from "../engine/discard-containers.ts";
import { timed } from "../report/report.ts";

/**
 * Stops and removes old containers that no request reaches any more. The new ones are proved and serve by then: what
 * cannot be removed is told, and left to the next roll-out.
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
  const stop = () => discardContainers(engine, containers, longestGraceS);
  await timed(report, service.name, "stop", stop, (kept) =>
    kept.length === 0 ? `${names} stopped and removed` : keptText(kept),
  );
}
