import { setTimeout as sleep } from "node:timers/promises";
import { note, timed } from "../report/report.ts";
import type { StackRollout, StackService } from "./stack.ts";
import {
  isUnderWay,
  readStackState,
  rollBackService,
  type StackState,
  type SwarmService,
  type UpdateStatus,
} from "./swarm-service.ts";

const pollMs = 250;

/**
 * Waits until Swarm has finished the updates of an earlier, killed roll-out, and rolls back those that do not end.
 * Otherwise Swarm would roll back to that unverified version if the new one fails.
 */
export async function recoverStack(rollout: StackRollout): Promise<void> {
  const present = await readStackState(rollout.engine, rollout.project.name);
  for (const service of rollout.project.services) {
    if (!isUnderWay(present.get(service.name)?.update)) continue;
    const detailOf = (state: string) => `an update of an earlier roll-out: ${state}`;
    await timed({ ...rollout, service }, "recover", () => finishUpdate(rollout, service), detailOf);
  }
}

async function finishUpdate(rollout: StackRollout, service: StackService): Promise<string> {
  const ended = await waitForUpdate(rollout, service);
  if (ended?.update?.state !== "updating") return ended?.update?.state ?? "gone";
  await rollBackService(rollout.engine, ended);
  return (await waitForUpdate(rollout, service))?.update?.state ?? "gone";
}

/**
 * Rolls back everything that this roll-out has changed when one service fails, so that the running versions belong
 * together. Swarm itself rolls back the failed service, if its policy says so. Services that cannot run twice stay: the
 * data of a database may not go back. So do jobs, which Swarm would run again, and new services, for inspection.
 */
export async function rollBackStack(rollout: StackRollout, before: StackState): Promise<void> {
  for (const service of rollout.project.services) {
    const old = before.get(service.name);
    if (!old || service.replacement.how === "recreate") continue;
    try {
      await rollBackChanged(rollout, service, old);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const text = `could not be rolled back: ${reason} Run: docker service rollback ${rollout.project.name}_${service.name}`;
      note({ ...rollout, service }, text);
    }
  }
}

async function rollBackChanged(
  rollout: StackRollout,
  service: StackService,
  old: SwarmService,
): Promise<void> {
  const now = (await readStackState(rollout.engine, rollout.project.name)).get(service.name);
  if (!now || now.isJob || now.definition === old.definition) return;
  const back = async () => {
    await rollBackService(rollout.engine, now);
    // After a request to stop there is no time to watch: Swarm goes on by itself.
    if (rollout.signal.aborted) return "asked for";
    return endingOf((await waitForUpdate(rollout, service))?.update?.state);
  };
  await timed({ ...rollout, service }, "roll back", back, (how) => `to the old version: ${how}`);
}

function endingOf(state: UpdateStatus["state"] | undefined): string {
  if (state === "rollback_completed") return "done";
  return state === "rollback_paused" ? "paused by Swarm" : "not done in time; Swarm goes on";
}

/** Waits until Swarm has finished the update or the roll back of a service, but no longer than that may take. */
async function waitForUpdate(
  { engine, project, signal }: StackRollout,
  { name, update }: StackService,
): Promise<SwarmService | undefined> {
  const deadlineMs = performance.now() + update.timeoutMs;
  for (;;) {
    const now = (await readStackState(engine, project.name)).get(name);
    if (!isUnderWay(now?.update) || performance.now() > deadlineMs) return now;
    await sleep(pollMs, undefined, { signal });
  }
}
