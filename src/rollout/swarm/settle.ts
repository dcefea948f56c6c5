import { setTimeout as sleep } from "node:timers/promises";
import type { StackRollout } from "./context.ts";
import type { StackService } from "./stack.ts";
import { listServices, type SwarmService } from "./swarm-service.ts";

const pollMs = 250;

/** Waits until Swarm is done with the update of a service or with taking it back, at most as long as that may take. */
export async function settle(rollout: StackRollout, service: StackService): Promise<SwarmService | null> {
  const deadlineMs = performance.now() + service.update.timeoutMs;
  for (;;) {
    const now = (await listServices(rollout.engine, rollout.project.name)).get(service.name) ?? null;
    if (now === null || !isUnderWay(now) || performance.now() > deadlineMs) return now;
    await sleep(pollMs, undefined, { signal: rollout.signal });
  }
}

export function isUnderWay({ update }: SwarmService): boolean {
  return update?.state === "updating" || update?.state === "rollback_started";
}
