import { formatDuration } from "../../config/duration.ts";
import { namesOf, removeContainer, stopContainer } from "../../platform/docker/container.ts";
import {
  type ContainerSpec,
  readContainerSpec,
  recreateContainer,
  startRecreated,
} from "../../platform/docker/container-spec.ts";
import type { Engine } from "../../platform/docker/engine.ts";
import { isServing } from "../../platform/docker/health.ts";
import { type Containers, containersOf, type ServiceRollout } from "../context.ts";
import { note, timed } from "../report/report.ts";
import { waitAllReady } from "./verify.ts";

/** The containers of a service before it is recreated, and the specs of those that ran: compose removes them. */
export interface OldContainers {
  readonly containers: Containers;
  readonly specs: readonly ContainerSpec[];
}

/** Reads them before compose removes them. */
export async function readOldContainers(
  { engine }: ServiceRollout,
  containers: Containers,
): Promise<OldContainers> {
  const running = containers.filter(({ status }) => status === "running");
  const specs = await Promise.all(running.map(({ id }) => readContainerSpec(engine, id)));
  return { containers, specs: specs.filter((spec) => spec !== null) };
}

/**
 * After a failed recreation, recreates the old containers, with their own image, configuration and volumes, in place
 * of those that failed, and waits until they are ready. Reports the result and never throws: the original failure is
 * the one to report. An interrupted roll-out only reports what it leaves.
 *
 * @param awayMs how long the service has been down
 */
export async function bringBack(
  on: ServiceRollout,
  before: OldContainers,
  awayMs: () => Promise<number>,
): Promise<void> {
  if (before.specs.length === 0) return;
  if (!on.signal.aborted) {
    await timed(
      on,
      "roll back",
      () => tryBringBack(on, before, awayMs),
      (text) => text,
    );
    return;
  }
  const advice = `To finish it: hotpush rollout ${on.service.name}`;
  note(on, `was interrupted while it was recreated: ${await whatIsLeft(on)}. ${advice}`);
}

async function tryBringBack(
  on: ServiceRollout,
  before: OldContainers,
  awayMs: () => Promise<number>,
): Promise<string> {
  try {
    const present = await containersOf(on);
    const wasLeft = before.specs.every(({ id }) => present.some((one) => one.id === id && isServing(one)));
    const ids = await putBack(on.engine, before, present);
    if (wasLeft) return "the old version was not touched and serves";
    const back = (await containersOf(on)).filter(({ id }) => ids.includes(id));
    // Its line would look like one of the new version.
    await waitAllReady({ ...on, report: () => {} }, back, { mayEnd: false });
    return `the old version runs again; ${on.service.name} was away for ${formatDuration(await awayMs())}`;
  } catch (error) {
    const message = error instanceof Error ? error.message.replace(/\.$/, "") : String(error);
    const reason = on.signal.aborted ? "the roll-out was asked to stop" : message;
    return `the old version could not be brought back: ${reason}; ${await whatIsLeft(on)}`;
  }
}

/**
 * Creates the old containers before it removes the others: if the engine refuses, nothing is lost.
 *
 * @returns the ids of those that run again
 */
async function putBack(
  engine: Engine,
  { containers, specs }: OldContainers,
  present: Containers,
): Promise<readonly string[]> {
  const gone = specs.filter(({ id }) => !present.some((container) => container.id === id));
  const made: { readonly id: string; readonly spec: ContainerSpec }[] = [];
  try {
    for (const spec of gone) made.push({ id: await recreateContainer(engine, spec), spec });
  } catch (error) {
    await Promise.allSettled(made.map(({ id }) => removeContainer(engine, id)));
    throw error;
  }
  for (const container of present) {
    if (containers.some(({ id }) => id === container.id)) continue;
    await stopContainer(engine, container, container.stopGraceS);
    await removeContainer(engine, container.id);
  }
  const stayed = specs.filter((spec) => !gone.includes(spec)).map(({ id }) => id);
  for (const id of stayed) await engine.post(`/containers/${id}/start`);
  for (const { id, spec } of made) await startRecreated(engine, id, spec);
  return [...stayed, ...made.map(({ id }) => id)];
}

async function whatIsLeft(on: ServiceRollout): Promise<string> {
  const { name } = on.service;
  try {
    const running = (await containersOf(on)).filter(({ status }) => status === "running");
    if (running.length === 0) return `${name} is down (see docker compose logs ${name})`;
    return running.every(isServing)
      ? `${namesOf(running)} runs`
      : `${namesOf(running)} runs, but is not healthy`;
  } catch {
    return `whether ${name} runs could not be asked`;
  }
}
