import { setTimeout as sleep } from "node:timers/promises";
import { ProblemError } from "../../problems.ts";
import { recreateCommand } from "../compose/compose.ts";
import type { Service } from "../compose/project.ts";
import { complaintOf, hasEndedWell, linesOf, runCompose } from "../compose/run-compose.ts";
import type { Rollout } from "../context.ts";
import { type Container, lastLogLines, listContainers } from "../engine/container.ts";
import { type ServiceOutcome, timed } from "../report/report.ts";

const startTimeoutMs = 120_000;
/** A migration of a large table takes its time; the deployment's own time-out is the limit that counts. */
const endTimeoutMs = 6 * 60 * 60_000;
const pollMs = 200;

/**
 * Runs a service that others wait for to its end, such as a migration.
 *
 * @throws ProblemError `run_once_failed` with its last log lines when it does not end with exit code 0
 */
export async function runService(rollout: Rollout, service: Service): Promise<ServiceOutcome> {
  const run = async () => {
    const argv = recreateCommand(rollout.target, service.name);
    const ending = await runCompose(rollout, argv, { timeoutMs: startTimeoutMs });
    if (!hasEndedWell(ending)) {
      throw new ProblemError({
        code: "container_start_failed",
        detail: `${service.name}: ${complaintOf("run", ending)}.`,
        evidence: linesOf(ending),
      });
    }
    return ended(rollout, service);
  };
  const { result } = await timed(rollout.report, service.name, "run", run, () => "ended with exit code 0");
  return {
    service: service.name,
    outcome: "ran",
    old: [],
    new: result.map(({ name }) => name),
    healthyAfterMs: null,
    drainedMs: null,
    downtimeMs: null,
    reason: null,
  };
}

async function ended({ engine, project, signal }: Rollout, service: Service): Promise<readonly Container[]> {
  const deadlineMs = performance.now() + endTimeoutMs;
  while (performance.now() < deadlineMs) {
    const containers = await listContainers(engine, project.name, service.name);
    const failed = containers.find(({ status, exitCode }) => status === "exited" && exitCode !== 0);
    if (failed) {
      const evidence = await lastLogLines(engine, failed.id, 20);
      const text = `${service.name} should run to its end, but container ${failed.name} ended with exit code ${failed.exitCode}.`;
      throw new ProblemError({ code: "run_once_failed", detail: text, evidence });
    }
    if (containers.length > 0 && containers.every(({ status }) => status === "exited")) return containers;
    await sleep(pollMs, undefined, { signal });
  }
  throw new ProblemError({ code: "run_once_failed", detail: `${service.name} did not run to its end.` });
}
