import { setTimeout as sleep } from "node:timers/promises";
import { formatDuration } from "../../config/duration.ts";
import { runOnceCommand } from "../../platform/compose/commands.ts";
import { runCompose, startFailure } from "../../platform/compose/run-compose.ts";
import {
  type Container,
  inspectContainer,
  namesOf,
  removeContainer,
  stopContainer,
} from "../../platform/docker/container.ts";
import { lastLogLines } from "../../platform/docker/diagnosis.ts";
import { hasSucceeded } from "../../platform/run-command.ts";
import { ProblemError } from "../../problems.ts";
import { type Containers, containersOf, type ServiceRollout } from "../context.ts";
import { note, ranOutcome, type ServiceOutcome, timed } from "../report/report.ts";

const startTimeoutMs = 120_000;
/** A migration of a large table takes its time; the deployment's own time-out is the effective limit. */
const endTimeoutMs = 6 * 60 * 60_000;
const pollMs = 200;

/**
 * Runs a service that others wait for, such as a migration, to its end in a container of its own. It never continues
 * unattended: if the roll-out is asked to stop, the container is stopped too.
 *
 * @throws ProblemError `run_once_failed` with its last log lines if it does not end with exit code 0
 */
export async function runService(on: ServiceRollout): Promise<ServiceOutcome> {
  const run = () => orStop(on, startAndWait(on));
  const { result } = await timed(on, "run", run, "ended with exit code 0");
  return ranOutcome(on.service, result);
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
  const { target, service, engine } = on;
  const ending = await runCompose(on, runOnceCommand(target, service.name), { timeoutMs: startTimeoutMs });
  if (!hasSucceeded(ending)) throw startFailure(service.name, "run", ending);
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
      note(
        on,
        `could not be stopped, and may go on: ${fault instanceof Error ? fault.message : String(fault)}`,
      );
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
