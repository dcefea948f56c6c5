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
