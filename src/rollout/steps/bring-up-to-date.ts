import { hasEndedWell } from "../../platform/docker/health.ts";
import { inspectImage } from "../../platform/docker/image.ts";
import { type Containers, containersOf, type ServiceRollout } from "../context.ts";
import { anonymousVolume, planService } from "../plan.ts";
import { recoverService, removeLeftovers } from "../recover.ts";
import { note, outcomeOf, reportSkipped, type ServiceOutcome, unchangedOutcome } from "../report/report.ts";
import type { AccompaniedRollout } from "../side-by-side/company.ts";
import { recreateService } from "./recreate-service.ts";
import { rollService } from "./roll-service.ts";
import { endEarlierRun, runService } from "./run-service.ts";

/**
 * Does with one service what its plan says, now that its image is here.
 *
 * @param found its containers when the roll-out began
 * @throws ProblemError if the new version fails: then the old one serves
 */
export async function bringUpToDate(on: AccompaniedRollout, found: Containers): Promise<ServiceOutcome> {
  const { service } = on;
  on.signal.throwIfAborted();
  on.company.failed.throwIfAborted();
  const containers = service.replacement.how === "run-once" ? await endEarlierRun(on) : found;
  const imageId = (await inspectImage(on.engine, service.image))?.id ?? null;
  const configHashes = (await on.configHashes).get(service.name) ?? [];
  const action = planService(on, containers, { imageId, configHashes });
  switch (action.kind) {
    case "leave":
      warnIfUnhealthy(on, containers);
      return unchangedOutcome(service, containers);
    case "start":
      return startService(on);
    case "roll":
      return rollService(on, containers);
    case "recreate":
      return recreateAlone(on, containers, action.reason);
    case "run":
      return on.company.room.beside(0, () => runService(on));
    case "skip":
      reportSkipped(on);
      return outcomeOf(service, "skipped", {});
  }
}

/** None of its containers ran when the roll-out began. One that was crashing may have recovered during the build. */
async function startService(on: AccompaniedRollout): Promise<ServiceOutcome> {
  const recovered = (await recoverService(on)).filter(({ status }) => status === "running");
  const present = recovered.length > 0 ? recovered : await containersOf(on);
  const volume = anonymousVolume(on.service, present);
  if (volume !== null) return recreateAlone(on, present, `anonymous volume ${volume}`);
  if (recovered.length === 0) await removeLeftovers(on);
  return rollService(on, recovered);
}

/** It may be what the others are checked through: the proxy, or a database. */
function recreateAlone(on: AccompaniedRollout, old: Containers, reason: string): Promise<ServiceOutcome> {
  return on.company.room.alone(async () => {
    on.company.failed.throwIfAborted();
    return recreateService(on, old, reason);
  });
}

/**
 * Warns about a service that is up to date but not healthy: an earlier roll-out may have been cut off while it
 * waited. If two containers can run, such a service is replaced instead.
 */
export function warnIfUnhealthy(
  scope: Pick<ServiceRollout, "report" | "service">,
  containers: Containers,
): void {
  const lasting = containers.filter((container) => !hasEndedWell(container));
  const sick = lasting.find(({ health }) => health !== null && health !== "healthy");
  if (sick)
    note(scope, `is as it should be, but not healthy (${sick.health}). See: docker logs ${sick.name}`);
}
