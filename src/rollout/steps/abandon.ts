import { type Container, removeContainer } from "../../platform/docker/container.ts";
import type { Service } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { timed } from "../report/report.ts";

/** Removes new containers that will not serve. What cannot be removed now, the next roll-out heals. */
export async function abandon(
  { engine, report }: Rollout,
  service: Service,
  containers: readonly Container[],
): Promise<void> {
  if (containers.length === 0) return;
  const names = containers.map(({ name }) => name).join(", ");
  const remove = () => Promise.allSettled(containers.map(({ id }) => removeContainer(engine, id)));
  await timed(report, service.name, "abandon", remove, (results) =>
    results.every(({ status }) => status === "fulfilled")
      ? `${names} removed`
      : `${names} could not be removed; the next roll-out will`,
  );
}
