import { scaleUpCommand } from "../../platform/compose/commands.ts";
import { startFailure } from "../../platform/compose/run-compose.ts";
import { namesOf } from "../../platform/docker/container.ts";
import { memoryOf } from "../../platform/docker/memory.ts";
import { hasSucceeded } from "../../platform/run-command.ts";
import { refuseChangedNetworks } from "../compose/refuse-changed-networks.ts";
import { type Containers, containersOf, type ServiceRollout } from "../context.ts";
import type { DrainSummary } from "../proxy/drain.ts";
import { namesReceiving, switchTraffic } from "../proxy/live-file.ts";
import { note, outcomeOf, ranOutcome, type ServiceOutcome, timed } from "../report/report.ts";
import type { AccompaniedRollout } from "../side-by-side/company.ts";
import { abandon, removeOld } from "./remove.ts";
import { verifyAlone, verifyInService, waitAllReady } from "./verify.ts";

const firstStart: DrainSummary = { drainedMs: null, downtimeMs: null, reason: null };

/**
 * Replaces the containers `old` of a service without dropping a request: the new ones start beside the old, as
 * soon as the machine has room for them; the traffic moves when they are healthy; the old ones stop when it has moved.
 *
 * @throws ProblemError if the new ones fail: the old ones still serve, and the new ones are removed
 */
export async function rollService(on: AccompaniedRollout, old: Containers): Promise<ServiceOutcome> {
  const { room, failed } = on.company;
  const signal = AbortSignal.any([on.signal, failed]);
  const bytes = await memoryOf(on.engine, old);
  try {
    return await room.beside(bytes, () => replace({ ...on, signal }, old));
  } catch (error) {
    if (failed.aborted) note(on, "is given up, because another service failed");
    throw error;
  }
}

async function replace(on: AccompaniedRollout, old: Containers): Promise<ServiceOutcome> {
  const fresh = await startBeside(on, old);
  const { healthyAfterMs, haveEnded } = await waitOrAbandon(on, old, fresh);
  if (haveEnded) return ranOutcome(on.service, fresh);
  await switchOrAbandon(on, old, fresh);
  const hadOld = old.length > 0;
  const moved = hadOld ? await verifyInService(on, old, fresh) : firstStart;
  await verifyAlone(on, old, fresh);
  await removeOld(on, old);
  const seen = { healthyAfterMs, ...moved };
  return outcomeOf(on.service, hadOld ? "rolled" : "started", { old, new: fresh }, seen);
}

/** Starts as many new containers of the service as it has replicas. */
async function startBeside(on: AccompaniedRollout, old: Containers): Promise<Containers> {
  const { target, service, signal } = on;
  const scale = { service: service.name, count: old.length + service.replicas };
  const start = async () => {
    signal.throwIfAborted();
    if (old.length > 0) await refuseChangedNetworks(on, service, scaleUpCommand(target, [scale]));
    try {
      const ending = await on.company.startContainers(scale);
      const fresh = await newContainers(on, old);
      if (hasSucceeded(ending) && fresh.length === service.replicas) return fresh;
      throw startFailure(service.name, "start", ending);
    } catch (error) {
      await abandon(on, await newContainers(on, old));
      throw error;
    }
  };
  return (await timed(on, "start", start, namesOf)).result;
}

/** Known by ids that were not there before: the numbers in their names cannot be predicted. */
async function newContainers(on: ServiceRollout, old: Containers): Promise<Containers> {
  const known = new Set(old.map(({ id }) => id));
  return (await containersOf(on)).filter(({ id }) => !known.has(id));
}

async function waitOrAbandon(on: AccompaniedRollout, old: Containers, fresh: Containers) {
  // If it served before, or if the proxy reads a live file for it, ending is a failure, whatever the exit code.
  const mayEnd = on.service.mayEnd && old.length === 0 && !on.liveFilesRead?.has(on.service.name);
  try {
    const ready = await waitAllReady(on, fresh, { mayEnd });
    on.company.failed.throwIfAborted();
    return ready;
  } catch (error) {
    await abandon(on, fresh);
    throw error;
  }
}

/** New containers that a live file names already stay: the next roll-out recovers. */
async function switchOrAbandon(on: ServiceRollout, old: Containers, fresh: Containers): Promise<void> {
  try {
    await switchTraffic(on, fresh);
  } catch (error) {
    await switchTraffic(on, old).catch(() => {});
    const named = await namesReceiving(on);
    if (!fresh.some(({ name }) => named.includes(name))) await abandon(on, fresh);
    throw error;
  }
}
