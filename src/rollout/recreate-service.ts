import { setTimeout as sleep } from "node:timers/promises";
import { formatDuration } from "#config/values";
import { recreateCommand, runCompose, startFailure } from "#platform/compose";
import {
  type Container,
  type ContainerSpec,
  inspectContainer,
  namesOf,
  readContainerSpec,
  recreateContainer,
  removeContainer,
  startRecreated,
  stopContainer,
} from "#platform/docker/containers";
import { isServing, lastLogLines, withOwnHealth } from "#platform/docker/health";
import { hasSucceeded } from "#platform/run-command";
import { ProblemError } from "#problems";
import type { Containers, ServiceRollout } from "./context.ts";
import { refuseChangedNetworks } from "./project.ts";
import { note, outcomeOf, type ServiceOutcome, timed } from "./report.ts";
import { containersOf, endTimeoutMs, runHooks, upTimeoutMs, waitAllReady } from "./service-containers.ts";
import { badAnswerOf, checkThroughProxy, patient, pollUntilGood } from "./switch-traffic.ts";

const pollMs = 200;
/** The engine kills a container when its stop grace period is over, which takes a moment. */
const killMs = 10_000;

/**
 * Replaces a service of which two cannot run: stops the old container, then starts the new one, and reports how long
 * the service was down. If the new version does not become ready, the old containers are recreated.
 *
 * @throws ProblemError if the new version is not ready
 */
export async function recreateService(
  on: ServiceRollout,
  old: Containers,
  { reason, isForced = false }: { readonly reason: string; readonly isForced?: boolean },
): Promise<ServiceOutcome> {
  const { service, engine } = on;
  const running = old.filter(({ status }) => status === "running");
  // Read before compose removes them.
  const read = await Promise.all(running.map(({ id }) => readContainerSpec(engine, id)));
  const specs = read.filter((spec) => spec !== null);
  const isFirst = running.length === 0;
  const startedMs = performance.now();
  const downMs = () => Math.round(performance.now() - startedMs);
  try {
    const up = () => bringUp(on, "recreate", { stopped: running, isForced });
    await timed(on, "recreate", up, `two cannot run: ${reason}`);
    const fresh = await containersOf(on);
    const ready = await waitAllReady(on, fresh, service.mayEnd && isFirst);
    const { healthyAfterMs } = ready;
    // Compose decides whether something changed.
    const isSame = old.map(({ id }) => id).join() === fresh.map(({ id }) => id).join();
    // A first start is checked after all waves, when the live files are there.
    if (!isFirst && !isSame) await checkThroughProxy(on, fresh, patient);
    if (ready.haveEnded) return outcomeOf(service, "ran", { new: fresh });
    if (isSame) return outcomeOf(service, "unchanged", { old, new: fresh });
    if (isFirst) return outcomeOf(service, "started", { new: fresh }, { healthyAfterMs, reason });
    const seen = { healthyAfterMs, downtimeMs: downMs(), reason };
    return outcomeOf(service, "recreated", { old, new: fresh }, seen);
  } catch (error) {
    await undoRecreation(on, old, specs, downMs);
    throw error;
  }
}

/**
 * Starts the new containers of a service.
 *
 * @param options.stopped the old ones, which compose stops
 * @param options.isForced whether they are replaced though compose sees no change
 */
async function bringUp(
  on: ServiceRollout,
  step: "recreate" | "run",
  { stopped, isForced }: { readonly stopped: Containers; readonly isForced: boolean },
): Promise<void> {
  const { target, service } = on;
  const options = isForced ? ["--force-recreate"] : [];
  const argv = [...recreateCommand(target, service.name, service.providers), ...options] as const;
  await refuseChangedNetworks(on, service.networks, argv);
  const ending = await runCompose(on, argv, { timeoutMs: upTimeoutMs([service], stopped) });
  if (!hasSucceeded(ending)) throw startFailure(service.name, step, ending);
}

/**
 * After a failed recreation, restores the old containers, with their own image, configuration and volumes, in place
 * of those that failed, and waits until they are ready. Reports what it then sees and never throws: the original failure is
 * the one to report. An interrupted roll-out goes back only if no new container has started yet.
 *
 * @param specs of those of `old` that ran
 * @param downMs how long the service has been down
 */
async function undoRecreation(
  on: ServiceRollout,
  old: Containers,
  specs: readonly ContainerSpec[],
  downMs: () => number,
): Promise<void> {
  const { service, signal } = on;
  if (specs.length === 0) return;
  if (signal.aborted) {
    note(on, `was interrupted while it was recreated. To finish it: hotpush rollout ${service.name}`);
    const present = await containersOf(on).catch(() => old);
    if (present.some(({ id, status }) => !old.some((one) => one.id === id) && status !== "created")) return;
  }
  const rollBack = async () => {
    try {
      const { ids, started } = await restoreOld(on, old, specs);
      const look = async () => (await containersOf(on)).filter(({ id }) => ids.includes(id));
      const back = await look();
      const restarted = back.filter(({ id }) => started.includes(id));
      for (const container of restarted) await runHooks(on, "post_start", container);
      // Its line would look like one of the new version.
      if (restarted.length > 0 && !signal.aborted) await waitAllReady({ ...on, report: () => {} }, back);
      const now = await withOwnHealth(on.engine, await look());
      return await describeRestored(on, now, restarted.length > 0 ? downMs() : null);
    } catch (error) {
      const message = error instanceof Error ? error.message.replace(/\.$/, "") : String(error);
      const reason = signal.aborted ? "the roll-out was asked to stop" : message;
      return `the old version ${signal.aborted ? "may not be back" : "could not be brought back"}: ${reason}. See: docker compose ps ${service.name}`;
    }
  };
  await timed(on, "roll back", rollBack);
}

/**
 * Creates the old containers before it removes the others: if the engine refuses, nothing is lost.
 *
 * @returns the ids of the old containers, and of those of them that had to be started
 */
async function restoreOld(on: ServiceRollout, old: Containers, specs: readonly ContainerSpec[]) {
  const { engine } = on;
  const present = await containersOf(on);
  const fresh = present.filter(({ id }) => !old.some((one) => one.id === id));
  const stayed = present.filter(({ id }) => specs.some((spec) => spec.id === id));
  // Compose creates the new container before it stops the old one of that number, which the engine finishes without compose.
  const isReplaced = ({ number }: Container) => fresh.some((one) => one.number === number);
  await Promise.all(stayed.filter(isReplaced).map((container) => awaitStop(on, container)));
  const gone = specs.filter(({ id }) => !present.some((container) => container.id === id));
  const made: { readonly id: string; readonly spec: ContainerSpec }[] = [];
  try {
    for (const spec of gone) made.push({ id: await recreateContainer(engine, spec), spec });
  } catch (error) {
    await Promise.allSettled(made.map(({ id }) => removeContainer(engine, id)));
    throw error;
  }
  for (const container of fresh) {
    await stopContainer(engine, container, container.stopGraceS);
    await removeContainer(engine, container.id);
  }
  const started = made.map(({ id }) => id);
  for (const { id } of stayed) {
    if ((await inspectContainer(engine, id))?.status !== "running") started.push(id);
    await engine.post(`/containers/${id}/start`);
  }
  for (const { id, spec } of made) await startRecreated(engine, id, spec);
  return { ids: [...stayed, ...made].map(({ id }) => id), started };
}

/** Waits until the engine has stopped a container; one that outlives its stop grace period is not being stopped. */
async function awaitStop(on: ServiceRollout, { id, name, stopGraceS }: Container): Promise<void> {
  const limitMs = stopGraceS * 1_000 + killMs;
  const deadlineMs = performance.now() + limitMs;
  const isRunning = async () => (await inspectContainer(on.engine, id))?.status === "running";
  if (await isRunning())
    note(on, `Docker may still be stopping ${name}: waiting for that, at most ${formatDuration(limitMs)}`);
  while ((await isRunning()) && performance.now() < deadlineMs) await sleep(pollMs);
}

/**
 * Describes the old containers as they are now, and what the proxy answers.
 *
 * @param awayMs how long the service was down; null if no container had to be started
 */
async function describeRestored(
  { service: { name, checkUrl }, signal }: ServiceRollout,
  now: Containers,
  awayMs: number | null,
): Promise<string> {
  const isUp = (one: Container) => (awayMs === null ? isServing(one) : one.status === "running");
  const what = awayMs === null ? "not replaced" : "started again";
  if (now.length === 0 || !now.every(isUp)) return `it was ${what}, and is not healthy`;
  const ask = () => badAnswerOf(checkUrl ?? "");
  const bad = checkUrl && !signal.aborted ? await pollUntilGood(ask, signal, { mostBad: patient }) : null;
  if (bad !== null) return `the old version runs, but does not answer well at ${checkUrl} (last: ${bad})`;
  if (awayMs === null) return "the old version was not touched and serves";
  return `the old version runs again; ${name} was away for ${formatDuration(awayMs)}`;
}

/**
 * Runs a service that others wait for, such as a migration, to its end in a container of its own. It never continues
 * unattended: if the roll-out is asked to stop, the container is stopped too.
 *
 * @throws ProblemError `run_once_failed` with its last log lines if it does not end with exit code 0
 */
export async function runService(on: ServiceRollout): Promise<ServiceOutcome> {
  const run = () => orStop(on, startAndWait(on));
  const { result } = await timed(on, "run", run, "ended with exit code 0");
  return outcomeOf(on.service, "ran", { new: result });
}

/**
 * Waits for a run that an earlier, killed roll-out started. If it were cut off, or a second one ran beside it, the
 * data might be damaged.
 *
 * @returns the containers of the service, none of them running
 */
export async function endEarlierRun(on: ServiceRollout): Promise<Containers> {
  const containers = await containersOf(on);
  const running = containers.filter(isUnderWay);
  if (running.length === 0) return containers;
  const waiting = `waiting for its end, at most ${formatDuration(endTimeoutMs)}`;
  note(on, `${namesOf(running)}, left by an earlier roll-out, still runs: ${waiting}`);
  const wait = () => orStop(on, ended(on));
  const { result } = await timed(on, "run", wait, (over) =>
    over.map(({ name, exitCode }) => `${name} ended with exit code ${exitCode}`).join(", "),
  );
  return result;
}

async function startAndWait(on: ServiceRollout): Promise<Containers> {
  const { service, engine } = on;
  await bringUp(on, "run", { stopped: [], isForced: true });
  const containers = await ended(on);
  const failed = containers.find(({ exitCode }) => exitCode !== 0);
  if (!failed && containers.length > 0) return containers;
  const what = failed
    ? `container ${failed.name} ended with exit code ${failed.exitCode}`
    : "its container was removed";
  throw new ProblemError({
    code: "run_once_failed",
    detail: `${service.name} should run to its end, but ${what}.`,
    evidence: failed ? await lastLogLines(engine, failed.id, 20) : [],
  });
}

async function ended(on: ServiceRollout): Promise<Containers> {
  const deadlineMs = performance.now() + endTimeoutMs;
  while (performance.now() < deadlineMs) {
    const containers = await containersOf(on);
    if (!containers.some(isUnderWay)) return containers;
    await sleep(pollMs, undefined, { signal: on.signal });
  }
  const detail = `${on.service.name} did not run to its end within ${formatDuration(endTimeoutMs)}.`;
  throw new ProblemError({ code: "run_once_failed", detail });
}

function isUnderWay({ status }: Container): boolean {
  return status === "running" || status === "restarting" || status === "paused";
}

/** If `work` fails while a container of the service is running, stops that container. */
async function orStop<Result>(on: ServiceRollout, work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    await stopRun(on).catch((fault: unknown) => {
      const reason = fault instanceof Error ? fault.message : String(fault);
      note(on, `could not be stopped, and may go on: ${reason}`);
    });
    throw error;
  }
}

/** Reports before it stops a container: the deployment's time-out leaves 15 s, less than some need to stop. */
async function stopRun(on: ServiceRollout): Promise<void> {
  const { engine } = on;
  for (const container of await containersOf(on)) {
    // Compose was killed before it started this one; the engine may be about to start it.
    if (container.status === "created") await removeContainer(engine, container.id);
    if (!isUnderWay(container)) continue;
    const { name, stopGraceS } = container;
    note(on, `${name} must not go on unattended: stopping it, with ${stopGraceS} s to end`);
    await stopContainer(engine, container, stopGraceS);
    const exitCode = (await inspectContainer(engine, container.id))?.exitCode;
    note(on, `${name} was stopped before its end, with exit code ${exitCode}`);
  }
}
