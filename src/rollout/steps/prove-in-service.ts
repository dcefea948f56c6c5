import { type Container, inspectContainer } from "../../platform/docker/container.ts";
import { diagnose } from "../../platform/docker/diagnosis.ts";
import { isServing } from "../../platform/docker/health.ts";
import type { Service } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { checkThroughProxy } from "../proxy/check-through-proxy.ts";
import { switchTraffic } from "../proxy/switch-traffic.ts";
import type { Traffic } from "../proxy/traffic.ts";
import { abandon } from "./abandon.ts";
import { drainOld, type Moved } from "./drain-old.ts";
import { explainBadAnswer } from "./explain-bad-answer.ts";

/**
 * With the traffic on the new containers, the check through the proxy while the old ones drain (where a live file has
 * moved the traffic, which is when it says something of the new ones alone), and a last look at them after that. The
 * old ones still run, so going back is one more switch. (On a first start there is nothing to go back to, and the proxy
 * itself may not run yet: its check comes when all services have started.)
 *
 * @returns what was seen of the requests to the old ones
 * @throws ProblemError while the old ones serve again, and the new ones are gone
 */
export async function proveInService(
  rollout: Rollout,
  service: Service,
  traffic: Traffic,
  old: readonly Container[],
  fresh: readonly Container[],
): Promise<Moved> {
  const draining = new AbortController();
  try {
    const [moved] = await Promise.all([
      drainOld(rollout, service, traffic, old, draining.signal),
      traffic.by === "live file" && checkThroughProxy(rollout, service),
    ]);
    await requireStillServing(rollout, fresh);
    return moved;
  } catch (error) {
    draining.abort();
    await switchTraffic(rollout, service, traffic, old);
    await drainOld(rollout, service, traffic, fresh);
    const explained = await explainBadAnswer(rollout, fresh, error);
    await abandon(rollout, service, fresh);
    throw explained;
  }
}

/** A version can be healthy until its first real request. */
async function requireStillServing({ engine }: Rollout, containers: readonly Container[]): Promise<void> {
  for (const container of containers) {
    const now = await inspectContainer(engine, container.id);
    if (now && isServing(now) && now.restartCount === 0) continue;
    throw await diagnose(engine, container, { kind: "fell" });
  }
}
