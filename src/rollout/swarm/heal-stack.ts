import { timed } from "../report/report.ts";
import type { StackRollout } from "./context.ts";
import { isBeingStopped } from "./own-task.ts";
import { isUnderWay, settle } from "./settle.ts";
import { listServices, rollBackService } from "./swarm-service.ts";

/**
 * Lets Swarm finish the updates that an earlier roll-out was killed in, and takes back those that do not end. Else that
 * version, which nobody has proved, would be what Swarm goes back to if the new one fails. One that
 * ends the task this process is in is not waited for: it waits for the deployment that this is part of.
 */
export async function healStack(rollout: StackRollout): Promise<void> {
  const present = await listServices(rollout.engine, rollout.project.name);
  for (const service of rollout.project.services) {
    const now = present.get(service.name);
    if (!now || !isUnderWay(now)) continue;
    if (service.name === rollout.own?.service && (await isBeingStopped(rollout))) continue;
    const finish = async () => {
      const settled = await settle(rollout, service);
      if (settled?.update?.state !== "updating") return settled?.update?.state ?? "gone";
      await rollBackService(rollout.engine, settled);
      return (await settle(rollout, service))?.update?.state ?? "gone";
    };
    await timed(
      rollout.report,
      service.name,
      "heal",
      finish,
      (state) => `an update of an earlier roll-out: ${state}`,
    );
  }
}
