import { formatDuration } from "../../config/duration.ts";
import {
  type Container,
  listContainers,
  removeContainer,
  stopContainer,
} from "../../platform/docker/container.ts";
import {
  type Blueprint,
  readBlueprint,
  recreateContainer,
  startRecreated,
} from "../../platform/docker/container-spec.ts";
import { isServing } from "../../platform/docker/health.ts";
import type { Service } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { timed } from "../report/report.ts";
import { waitAllReady } from "./wait-all-ready.ts";

/** The containers of a service before it was recreated, and how those that ran were made: compose removes them. */
export interface Before {
  readonly containers: readonly Container[];
  readonly blueprints: readonly Blueprint[];
}

/** Notes it while they are there. */
export async function noteBefore({ engine }: Rollout, containers: readonly Container[]): Promise<Before> {
  const running = containers.filter(({ status }) => status === "running");
  const blueprints = await Promise.all(running.map(({ id }) => readBlueprint(engine, id)));
  return { containers, blueprints: blueprints.filter((blueprint) => blueprint !== null) };
}

/**
 * After a recreation that failed, makes the old containers again, with their own image, configuration and volumes, in
 * place of those that failed, and waits until they are ready. Reports what came of it and never throws: the failure
 * that led here is the one to tell of. An interrupted roll-out only tells what it leaves.
 *
 * @param awayMs how long the service has been away
 */
export async function bringBack(
  rollout: Rollout,
  service: Service,
  before: Before,
  awayMs: () => Promise<number>,
): Promise<void> {
  const { report, signal } = rollout;
  if (before.blueprints.length === 0) return;
  if (signal.aborted) {
    const text = `was interrupted while it was recreated: ${await whatIsLeft(rollout, service)}. To finish it: hotpush rollout ${service.name}`;
    return report({ event: "note", service: service.name, text });
  }
  const bring = () => tryBringBack(rollout, service, before, awayMs);
  await timed(report, service.name, "roll back", bring, (told) => told);
}

async function tryBringBack(
  rollout: Rollout,
  service: Service,
  before: Before,
  awayMs: () => Promise<number>,
): Promise<string> {
  try {
    const present = await listContainers(rollout.engine, rollout.project.name, service.name);
    const wasLeft = before.blueprints.every(({ id }) =>
      present.some((one) => one.id === id && isServing(one)),
    );
    const ids = await putBack(rollout, before, present);
    if (wasLeft) return "the old version was not touched and serves";
    const now = await listContainers(rollout.engine, rollout.project.name, service.name);
    const back = now.filter(({ id }) => ids.includes(id));
    // Its line would look like one of the new version.
    await waitAllReady({ ...rollout, report: () => {} }, service, back, { mayEnd: false });
    return `the old version runs again; ${service.name} was away for ${formatDuration(await awayMs())}`;
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/\.$/, "") : String(error);
    return `the old version could not be brought back: ${reason}; ${await whatIsLeft(rollout, service)}`;
  }
}

/**
 * The old ones are made before the others go: what the engine refuses to make costs nothing then.
 *
 * @returns the ids of those that run again
 */
async function putBack(
  { engine }: Rollout,
  { containers, blueprints }: Before,
  present: readonly Container[],
): Promise<readonly string[]> {
  const gone = blueprints.filter(({ id }) => !present.some((container) => container.id === id));
  const made: { readonly id: string; readonly blueprint: Blueprint }[] = [];
  try {
    for (const blueprint of gone) made.push({ id: await recreateContainer(engine, blueprint), blueprint });
  } catch (error) {
    await Promise.allSettled(made.map(({ id }) => removeContainer(engine, id)));
    throw error;
  }
  for (const container of present) {
    if (containers.some(({ id }) => id === container.id)) continue;
    await stopContainer(engine, container, container.stopGraceS);
    await removeContainer(engine, container.id);
  }
  const stayed = blueprints.filter((blueprint) => !gone.includes(blueprint)).map(({ id }) => id);
  for (const id of stayed) await engine.post(`/containers/${id}/start`);
  for (const { id, blueprint } of made) await startRecreated(engine, id, blueprint);
  return [...stayed, ...made.map(({ id }) => id)];
}

async function whatIsLeft({ engine, project }: Rollout, service: Service): Promise<string> {
  try {
    const containers = await listContainers(engine, project.name, service.name);
    const running = containers.filter(({ status }) => status === "running");
    const names = running.map(({ name }) => name).join(", ");
    if (running.length === 0)
      return `${service.name} is away (docker compose logs ${service.name} tells more)`;
    return running.every(isServing) ? `${names} runs` : `${names} runs, but is not healthy`;
  } catch {
    return `whether ${service.name} runs could not be asked`;
  }
}
