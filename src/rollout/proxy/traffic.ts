import type { Container } from "../../platform/docker/container.ts";
import type { Service } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { timed } from "../report/report.ts";
import { switchLiveFiles } from "./live-file.ts";

/**
 * Who brings the traffic to the new containers of a service:
 * a live file, the proxy's own watch on Docker (`scale`), or nobody, because no request comes through a proxy (a worker).
 */
export type Traffic =
  | { readonly by: "live file"; readonly directory: string }
  | { readonly by: "watching proxy" }
  | { readonly by: "nobody" };

/** Decides it for `service`. Where the proxy does not say what it reads, a live file is written: it does no harm. */
export function trafficOf(
  rollout: Pick<Rollout, "liveDirectory" | "liveFilesRead">,
  service: Service,
): Traffic {
  if (service.replacement.how === "scale") return { by: "watching proxy" };
  if (rollout.liveDirectory === null) return { by: "nobody" };
  const isRead = rollout.liveFilesRead === null || rollout.liveFilesRead.has(service.name);
  return isRead ? { by: "live file", directory: rollout.liveDirectory } : { by: "nobody" };
}

/**
 * Sends the requests to `containers`, where that is for a live file to say. Where there are none, all stays as it is.
 *
 * @throws ProblemError `live_file_not_writable`
 */
export async function switchTraffic(
  { report }: Rollout,
  service: Service,
  traffic: Traffic,
  containers: readonly Container[],
): Promise<void> {
  if (traffic.by !== "live file" || containers.length === 0) return;
  const names = containers.map(({ name }) => name);
  const write = () => switchLiveFiles(traffic.directory, service.name, names);
  await timed(report, service.name, "switch", write, () => `requests now go to ${names.join(", ")}`);
}

/** No request is left in a drained container: it may take this long to close, not its whole stop grace period. */
const drainedGraceS = 10;

/**
 * The most seconds between SIGTERM and SIGKILL, where a container's own stop grace period is longer. What was not drained
 * may be in the middle of its work, or still get requests from a proxy that watches Docker.
 */
export function longestGraceS({ by }: Traffic): number {
  return by === "live file" ? drainedGraceS : Number.POSITIVE_INFINITY;
}
