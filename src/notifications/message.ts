import { hostname } from "node:os";
import { deploymentJson } from "#calls/shapes";
import { onlyProjectName } from "#config/server";
import { formatDuration } from "#config/values";
import { type Deployment, liveCommit, stateTexts } from "#deployments/deployment";
import type { EventReport } from "#deployments/outbox";
import { branchOf, shortCommit } from "#deployments/push";
import { findDeployment, listSteps } from "#deployments/store";
import { attempt } from "#platform/files";
import type { Store } from "#platform/sqlite";
import { printable } from "#platform/terminal";
import { logPath, readLastLines } from "#runner/log-file";

/** A report of the outbox, with what is known of it beside the record. */
export interface Message {
  readonly report: EventReport;
  /** The step in which the deployment ended; null: it reported none. */
  readonly step: string | null;
  /** The last lines that its script printed, redacted; none if it did not fail. */
  readonly lastLines: readonly string[];
  /** The deployment on the page; null: there is no page. */
  readonly link: string | null;
}

export interface MessageSources {
  /** The project's view. */
  readonly store: Store;
  /** The directory of the project's logs. */
  readonly statePath: string;
  readonly pageUrl: URL | null;
}

const mostLastLines = 10;
const mostLastBytes = 16 * 1024;

/** Adds the link to a report; and the step and the last lines, if the deployment failed and was not run again since. */
export function messageOf(report: EventReport, { store, statePath, pageUrl }: MessageSources): Message {
  const { deployment } = report;
  const link = pageUrl && new URL(`/deployments/${deployment.id}`, pageUrl).href;
  const message = { report, step: null, lastLines: [], link };
  const isCurrent = findDeployment(store, deployment.id)?.attempts === deployment.attempts;
  if (!isFailure(message) || !isCurrent) return message;
  const steps = listSteps(store, deployment).filter(({ attempt }) => attempt === deployment.attempts);
  return { ...message, step: steps.at(-1)?.name ?? null, lastLines: lastLinesOf(statePath, deployment) };
}

/** Of this attempt, which may have been refused before it printed a line. A log that cannot be read has none. It is redacted. */
function lastLinesOf(statePath: string, { id, startedAtMs }: Deployment): readonly string[] {
  const read = () => readLastLines(logPath(statePath, id), mostLastBytes, startedAtMs ?? 0);
  const lines = attempt(read, []);
  const printed = lines.filter((line) => line.trim() !== "").slice(-mostLastLines);
  return printed.map((line) => printable(line));
}

/** Whether the deployment failed, so that somebody should look. */
export function isFailure({ report }: Message): boolean {
  return report.deployment.state === "failed" || report.deployment.state === "timed_out";
}

/** Whether it is the first success after a failure. */
export function isRecovery({ report }: Message): boolean {
  return report.deployment.state === "succeeded" && report.isAfterFailure;
}

/** One line: `shop on server-1: deployment 12 failed`. */
export function headlineOf(message: Message): string {
  const { id, project, state } = message.report.deployment;
  const name = project === onlyProjectName ? "Hotpush" : project;
  if (message.report.event === "test") return `${name} on ${hostname()}: this is a test`;
  const again = isRecovery(message) ? " again" : "";
  return `${name} on ${hostname()}: deployment ${id} ${stateTexts[state]}${again}`;
}

/** One line without the project, for a status on a commit. */
export function summaryOf({ report }: Message): string {
  const { id, state, problem, skipReason, startedAtMs, finishedAtMs } = report.deployment;
  const reason = problem?.detail ?? skipReason;
  const durationMs =
    startedAtMs === null || finishedAtMs === null ? null : Math.max(0, finishedAtMs - startedAtMs);
  const ending = durationMs === null || state === "skipped" ? "" : ` after ${formatDuration(durationMs)}`;
  return `Deployment ${id} ${stateTexts[state]}${ending}${reason ? `: ${reason}` : ""}`;
}

/** Plain lines below the headline: the commit, the reason, and the step. */
export function detailsOf({ report, step }: Message): readonly string[] {
  if (report.event === "test") return ["Messages about deployments will arrive here."];
  const { deployment } = report;
  const { ref, subject, author, problem, skipReason } = deployment;
  const what = `${branchOf(ref)} at ${shortCommit(liveCommit(deployment))}`;
  const commit = subject ? `${what}: ${subject}` : what;
  return [
    author ? `${commit} (${author})` : commit,
    ...(problem ? [problem.detail] : []),
    ...(skipReason ? [skipReason] : []),
    ...(step && problem ? [`Step: ${step}`] : []),
  ];
}

/**
 * The message for a program; docs/notifications.md has each member. Its type is `deployment.started`, or `deployment.` and
 * the state in which it ended; `test`.
 */
export function messageJson({ report, step, lastLines, link }: Message) {
  const { deployment, event, isAfterFailure } = report;
  const { state, startedAtMs, finishedAtMs, createdAtMs } = deployment;
  const atMs = (event === "started" ? startedAtMs : finishedAtMs) ?? createdAtMs;
  return {
    type: event === "test" ? event : `deployment.${event === "started" ? event : state}`,
    timestamp: new Date(atMs).toISOString(),
    data: {
      server: hostname(),
      deployment: deploymentJson(deployment),
      isAfterFailure,
      step,
      lastLines,
      link,
    },
  };
}
