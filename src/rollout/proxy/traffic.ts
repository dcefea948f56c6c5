import type { Container } from "../../platform/docker/container.ts";
import type { RolloutService } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { timed } from "../report/report.ts";
import { switchLiveFiles } from "./live-file.ts";

/**
 * How requests reach the new containers of a service: by a live file, by a proxy that watches Docker (`scale`), or
 * not at all, because no request comes through a proxy (a worker).
 */
export type Traffic =
  | { readonly by: "live file"; readonly directory: string }
  | { readonly by: "watching proxy" }
  | { readonly by: "nobody" };

/**
 * Decides it for `service`. If the proxy does not report which files it reads, a live file is written: it does no
 * harm.
 */
export function trafficOf(
  rollout: Pick<Rollout, "liveDirectory" | "liveFilesRead">,
  service: RolloutService,
): Traffic {
  if (service.replacement.how === "scale") return { by: "watching proxy" };
  if (rollout.liveDirectory === null) return { by: "nobody" };
  const isRead = rollout.liveFilesRead === null || rollout.liveFilesRead.has(service.name);
  return isRead ? { by: "live file", directory: rollout.liveDirectory } : { by: "nobody" };
}

/**
 * Sends the requests to `containers`, if a live file directs them. Without containers, nothing changes.
 *
 * @throws ProblemError `live_file_not_writable`
 */
export async function switchTraffic(
  { report }: Rollout,
  service: RolloutService,
  traffic: Traffic,
  containers: readonly Container[],
): Promise<void> {
  if (traffic.by !== "live file" || containers.length === 0) return;
  const names = containers.map(({ name }) => name);
  const write = () => switchLiveFiles(traffic.directory, service.name, names);
  await timed({ report, service }, "switch", write, () => `requests now go to ${names.join(", ")}`);
}

/** A drained container has no requests left: it gets this long to exit, not its whole stop grace period. */
const drainedGraceS = 10;

/**
 * The most seconds between SIGTERM and SIGKILL, even if a container's own stop grace period is longer. A container
 * that was not drained may be in the middle of its work, or still get requests from a proxy that watches Docker.
 */
export function longestGraceS({ by }: Traffic): number {
  return by === "live file" ? drainedGraceS : Number.POSITIVE_INFINITY;
}
