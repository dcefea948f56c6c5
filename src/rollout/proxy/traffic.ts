import { ProblemError } from "../../problems.ts";
import type { Service } from "../compose/project.ts";
import type { Rollout } from "../context.ts";

/**
 * Who brings the traffic to the new containers of a service:
 * a live file, the proxy's own watch on Docker (`scale`), or nobody, because no request comes through a proxy (a worker).
 */
export type Traffic =
  | { readonly by: "live file"; readonly directory: string }
  | { readonly by: "watching proxy" }
  | { readonly by: "nobody" };

/**
 * Decides it for `service`. Where the proxy does not say what it reads, a live file is written: it does no harm.
 *
 * @throws ProblemError `compose_invalid` where its name is that of another service's live file
 */
export function trafficOf(
  rollout: Pick<Rollout, "liveDirectory" | "liveFilesRead">,
  service: Service,
): Traffic {
  if (service.replacement.how === "scale") return { by: "watching proxy" };
  if (rollout.liveDirectory === null) return { by: "nobody" };
  // Its live file would be that of another service's replica.
  if (/\.\d+$/.test(service.name)) throw ambiguous(service.name);
  const isRead = rollout.liveFilesRead === null || rollout.liveFilesRead.has(service.name);
  return isRead ? { by: "live file", directory: rollout.liveDirectory } : { by: "nobody" };
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

function ambiguous(service: string): ProblemError {
  const detail = `The name of the service ${service} ends in a point and a number, as live files of replicas do. Give it another name in the compose file, such as ${service.replaceAll(".", "-")}. Nothing was changed.`;
  return new ProblemError({ code: "compose_invalid", detail });
}
