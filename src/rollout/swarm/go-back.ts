import { timed } from "../report/report.ts";
import type { StackRollout } from "./context.ts";
import { settle } from "./settle.ts";
import type { Snapshot } from "./snapshot.ts";
import type { StackService } from "./stack.ts";
import { listServices, rollBackService, type SwarmService, type UpdateStatus } from "./swarm-service.ts";

/**
 * When one service fails, all that this roll-out changed go back to what they were, so that the versions that serve
 * belong together. Swarm does that by itself for the one that failed, where it was told to. Services of which two
 * cannot run stay as they are: a database may not go back. So do jobs, which Swarm would run again, and services that are
 * new: one can look at them.
 */
export async function goBack(rollout: StackRollout, before: Snapshot): Promise<void> {
  for (const service of rollout.project.services) {
    const old = before.services.get(service.name);
    if (!old || service.replacement.how === "recreate") continue;
    try {
      await goBackOne(rollout, service, old);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      rollout.report({
        event: "note",
        service: service.name,
        text: `could not go back by itself: ${reason} Run: docker service rollback ${rollout.project.name}_${service.name}`,
      });
    }
  }
}

async function goBackOne(rollout: StackRollout, service: StackService, old: SwarmService): Promise<void> {
  const now = (await listServices(rollout.engine, rollout.project.name)).get(service.name);
  if (!now || now.isJob || now.definition === old.definition) return;
  const back = async () => {
    await rollBackService(rollout.engine, now);
    // Asked to stop, nobody has the time to watch: Swarm goes on without us.
    if (rollout.signal.aborted) return "asked for";
    return endingOf((await settle(rollout, service))?.update?.state);
  };
  await timed(rollout.report, service.name, "roll back", back, (how) => `to the old version: ${how}`);
}

function endingOf(state: UpdateStatus["state"] | undefined): string {
  if (state === "rollback_completed") return "done";
  return state === "rollback_paused" ? "paused by Swarm" : "not done in time; Swarm goes on";
}
