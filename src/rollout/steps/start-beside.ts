import { scaleUpCommand } from "../../platform/compose/commands.ts";
import { complaintOf, hasEndedWell, linesOf, runCompose } from "../../platform/compose/run-compose.ts";
import { type Container, listContainers } from "../../platform/docker/container.ts";
import { ProblemError } from "../../problems.ts";
import type { Service } from "../compose/project.ts";
import { refuseChangedNetworks } from "../compose/refuse-changed-networks.ts";
import type { Rollout } from "../context.ts";
import { timed } from "../report/report.ts";
import { abandon } from "./remove-old.ts";

const startTimeoutMs = 120_000;

/** Starts as many new containers of `service` as it has replicas, beside `old`. */
export async function startBeside(
  rollout: Rollout,
  service: Service,
  old: readonly Container[],
): Promise<readonly Container[]> {
  const argv = scaleUpCommand(rollout.target, service.name, old.length + service.replicas);
  const start = async () => {
    if (old.length > 0) await refuseChangedNetworks(rollout, service, argv);
    const ending = await startOrRemove(rollout, service, old, () =>
      runCompose(rollout, argv, { timeoutMs: startTimeoutMs }),
    );
    const fresh = await newContainers(rollout, service, old);
    if (hasEndedWell(ending) && fresh.length === service.replicas) return fresh;
    await abandon(rollout, service, fresh);
    throw new ProblemError({
      code: "container_start_failed",
      detail: `${service.name} was not started: ${complaintOf("start", ending)}.`,
      evidence: linesOf(ending),
    });
  };
  const { result } = await timed(rollout.report, service.name, "start", start, (fresh) =>
    fresh.map(({ name }) => name).join(", "),
  );
  return result;
}

/** What compose had created when it was interrupted goes again. */
async function startOrRemove<Result>(
  rollout: Rollout,
  service: Service,
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

/** The counter in the names only grows, so what is new is told by the ids that were not there before. */
async function newContainers(
  { engine, project }: Rollout,
  service: Service,
  old: readonly Container[],
): Promise<readonly Container[]> {
  const known = new Set(old.map(({ id }) => id));
  return (await listContainers(engine, project.name, service.name)).filter(({ id }) => !known.has(id));
}
