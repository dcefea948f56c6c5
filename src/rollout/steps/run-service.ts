import { setTimeout as sleep } from "node:timers/promises";
import { formatDuration } from "../../config/duration.ts";
import { runOnceCommand } from "../../platform/compose/commands.ts";
import { complaintOf, hasEndedWell, linesOf, runCompose } from "../../platform/compose/run-compose.ts";
import {
  type Container,
  inspectContainer,
  listContainers,
  removeContainer,
  stopContainer,
} from "../../platform/docker/container.ts";
import { lastLogLines } from "../../platform/docker/diagnosis.ts";
import { ProblemError } from "../../problems.ts";
import type { Service } from "../compose/project.ts";
import type { Rollout } from "../context.ts";
import { ran, type ServiceOutcome, timed } from "../report/report.ts";

const startTimeoutMs = 120_000;
/** A migration of a large table takes its time; the deployment's own time-out is the limit that counts. */
const endTimeoutMs = 6 * 60 * 60_000;
const pollMs = 200;

/**
 * Runs a service that others wait for to its end, such as a migration, in a container of its own. None goes on
 * unattended: if the roll-out is asked to stop, the container is stopped too.
 *
 * @throws ProblemError `run_once_failed` with its last log lines when it does not end with exit code 0
 */
export async function runService(rollout: Rollout, service: Service): Promise<ServiceOutcome> {
  const run = () => orStop(rollout, service, () => startAndWait(rollout, service));
  const { result } = await timed(rollout.report, service.name, "run", run, () => "ended with exit code 0");
  return ran(service, result);
}

/**
 * Waits for a run that an earlier roll-out started and did not live to see the end of: cut off, or beside a second one,
 * it might spoil the data.
 *
 * @returns the containers of the service, none of which runs
 */
export async function endEarlierRun(rollout: Rollout, service: Service): Promise<readonly Container[]> {
  const { engine, project, report } = rollout;
  const containers = await listContainers(engine, project.name, service.name);
  const running = containers.filter(isUnderWay);
  if (running.length === 0) return containers;
  const names = namesOf(running);
  const text = `${names}, left by an earlier roll-out, still runs: waiting for its end, at most ${formatDuration(endTimeoutMs)}`;
  report({ event: "note", service: service.name, text });
  const wait = () => orStop(rollout, service, () => ended(rollout, service));
  const { result } = await timed(report, service.name, "run", wait, (over) =>
    over.map(({ name, exitCode }) => `${name} ended with exit code ${exitCode}`).join(", "),
  );
  return result;
}

async function startAndWait(rollout: Rollout, service: Service): Promise<readonly Container[]> {
  const argv = runOnceCommand(rollout.target, service.name);
  const ending = await runCompose(rollout, argv, { timeoutMs: startTimeoutMs });
  if (!hasEndedWell(ending)) {
    throw new ProblemError({
      code: "container_start_failed",
      detail: `${service.name}: ${complaintOf("run", ending)}.`,
      evidence: linesOf(ending),
    });
  }
  const containers = await ended(rollout, service);
  const failed = containers.find(({ exitCode }) => exitCode !== 0);
  if (!failed && containers.length > 0) return containers;
  const what = failed
    ? `container ${failed.name} ended with exit code ${failed.exitCode}`
    : "its container was removed";
  throw new ProblemError({
    code: "run_once_failed",
    detail: `${service.name} should run to its end, but ${what}.`,
    evidence: failed ? await lastLogLines(rollout.engine, failed.id, 20) : [],
  });
}

async function ended({ engine, project, signal }: Rollout, service: Service): Promise<readonly Container[]> {
  const deadlineMs = performance.now() + endTimeoutMs;
  while (performance.now() < deadlineMs) {
    const containers = await listContainers(engine, project.name, service.name);
    if (!containers.some(isUnderWay)) return containers;
    await sleep(pollMs, undefined, { signal });
  }
  const detail = `${service.name} did not run to its end within ${formatDuration(endTimeoutMs)}.`;
  throw new ProblemError({ code: "run_once_failed", detail });
}

function isUnderWay({ status }: Container): boolean {
  return status === "running" || status === "restarting" || status === "paused";
}

/** Where `work` fails while a container of the service is under way, that is stopped. */
async function orStop<Result>(
  rollout: Rollout,
  service: Service,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    await stopRun(rollout, service).catch((fault: unknown) => {
      const reason = fault instanceof Error ? fault.message : String(fault);
      tell(rollout, service, `could not be stopped, and may go on: ${reason}`);
    });
    throw error;
  }
}

/** Reports before it stops one as well: the deployment's time-out leaves 15 s for it, less than some need to stop. */
async function stopRun(rollout: Rollout, service: Service): Promise<void> {
  const { engine, project } = rollout;
  for (const container of await listContainers(engine, project.name, service.name)) {
    // Compose was killed before it started this one; the engine may be about to.
    if (container.status === "created") await removeContainer(engine, container.id);
    if (!isUnderWay(container)) continue;
    const { name, stopGraceS } = container;
    tell(rollout, service, `${name} must not go on unattended: stopping it, with ${stopGraceS} s to end`);
    await stopContainer(engine, container, stopGraceS);
    const exitCode = (await inspectContainer(engine, container.id))?.exitCode;
    tell(rollout, service, `${name} was stopped before its end, with exit code ${exitCode}`);
  }
}

function tell({ report }: Rollout, { name }: Service, text: string): void {
  report({ event: "note", service: name, text });
}

function namesOf(containers: readonly Container[]): string {
  return containers.map(({ name }) => name).join(", ");
}
