import {
  type Container,
  discardContainers,
  inspectContainer,
  namesOf,
  removeContainer,
  type UnremovedContainer,
} from "../../platform/docker/container.ts";
import { ProblemError } from "../../problems.ts";
import type { RolloutService } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { timed } from "../report/report.ts";

/**
 * Stops and removes old containers that get no more requests. The new ones are verified and serve by now: a stopped
 * container that cannot be removed is reported, and left to the next roll-out.
 *
 * @param longestGraceS the most seconds between SIGTERM and SIGKILL, even if a container's own stop grace period is
 * longer
 * @throws ProblemError `docker_refused` if one keeps running
 */
export async function removeOld(
  { engine, report }: Rollout,
  service: RolloutService,
  containers: readonly Container[],
  longestGraceS: number,
): Promise<void> {
  if (containers.length === 0) return;
  const names = namesOf(containers);
  const stop = async () => {
    const kept = await discardContainers(engine, containers, longestGraceS);
    for (const { container, reason } of kept) {
      if ((await inspectContainer(engine, container.id))?.status !== "running") continue;
      const detail = `${container.name} cannot be stopped, and runs beside the new version: ${reason}`;
      throw new ProblemError({ code: "docker_refused", detail });
    }
    return kept;
  };
  await timed({ report, service }, "stop", stop, (kept) =>
    kept.length === 0 ? `${names} stopped and removed` : keptText(kept),
  );
}

function keptText(kept: readonly UnremovedContainer[]): string {
  return kept
    .map(
      ({ container, reason }) =>
        `${container.name} has stopped and could not be removed, the next roll-out tries again: ${reason}`,
    )
    .join("; ");
}

/** Removes new containers that will not serve. The next roll-out removes what cannot be removed now. */
export async function abandon(
  { engine, report }: Rollout,
  service: RolloutService,
  containers: readonly Container[],
): Promise<void> {
  if (containers.length === 0) return;
  const names = namesOf(containers);
  const remove = () => Promise.allSettled(containers.map(({ id }) => removeContainer(engine, id)));
  await timed({ report, service }, "abandon", remove, (results) =>
    results.every(({ status }) => status === "fulfilled")
      ? `${names} removed`
      : `${names} could not be removed; the next roll-out will`,
  );
}
