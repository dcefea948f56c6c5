import { scaleUpCommand } from "../../platform/compose/commands.ts";
import { hasSucceeded, runCompose, startFailure } from "../../platform/compose/run-compose.ts";
import { type Container, listContainers, namesOf } from "../../platform/docker/container.ts";
import type { RolloutService } from "../compose/project.ts";
import { refuseChangedNetworks } from "../compose/refuse-changed-networks.ts";
import type { Rollout } from "../context.ts";
import { timed } from "../report/report.ts";
import { abandon } from "./remove-old.ts";

const startTimeoutMs = 120_000;

/** Starts as many new containers of `service` as it has replicas, beside `old`. */
export async function startBeside(
  rollout: Rollout,
  service: RolloutService,
  old: readonly Container[],
): Promise<readonly Container[]> {
  const argv = scaleUpCommand(rollout.target, service.name, old.length + service.replicas);
  const start = async () => {
    if (old.length > 0) await refuseChangedNetworks(rollout, service, argv);
    const ending = await startOrRemove(rollout, service, old, () =>
      runCompose(rollout, argv, { timeoutMs: startTimeoutMs }),
    );
    const fresh = await newContainers(rollout, service, old);
    if (hasSucceeded(ending) && fresh.length === service.replicas) return fresh;
    await abandon(rollout, service, fresh);
    throw startFailure(service.name, "start", ending);
  };
  const { result } = await timed({ ...rollout, service }, "start", start, (fresh) => namesOf(fresh));
  return result;
}

/** If compose is interrupted, removes what it had created. */
async function startOrRemove<Result>(
  rollout: Rollout,
  service: RolloutService,
  old: readonly Container[],
  start: () => Promise<Result>,
): Promise<Result> {
  try {
    return await start();
  } catch (error) {
    await abandon(rollout, service, await newContainers(rollout, service, old));
    throw error;
  }
}

/** Known by ids that were not there before: the numbers in their names cannot be predicted. */
async function newContainers(
  { engine, project }: Rollout,
  service: RolloutService,
  old: readonly Container[],
): Promise<readonly Container[]> {
  const known = new Set(old.map(({ id }) => id));
  return (await listContainers(engine, project.name, service.name)).filter(({ id }) => !known.has(id));
}
