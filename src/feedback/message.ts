import { hostname } from "node:os";
import { formatDuration } from "../config/duration.ts";
import { type Deployment, liveCommit } from "../deployments/deployment.ts";
import type { EventReport } from "../deployments/outbox.ts";
import { onlyProjectName } from "../projects/project.ts";

/** A report with what is known of it beside the record. */
export interface Message {
  readonly report: EventReport;
  /** The step in which the deployment ended; null: it reported none. */
  readonly step: string | null;
  /** The last lines that its script printed, redacted; none if it did not fail. */
  readonly lastLines: readonly string[];
  /** The deployment on the page; null: there is no page. */
  readonly link: string | null;
}

const stateTexts: Readonly<Record<Deployment["state"], string>> = {
  queued: "is queued",
  running: "started",
  succeeded: "succeeded",
  failed: "failed",
  timed_out: "timed out",
  cancelled: "was cancelled",
  superseded: "was superseded",
  interrupted: "was interrupted",
  skipped: "was skipped",
};

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

/** One line without the project: for a status on a commit. */
export function summaryOf({ report }: Message): string {
  const { id, state, problem, skipReason, startedAtMs, finishedAtMs } = report.deployment;
  const reason = problem?.detail ?? skipReason;
  const durationMs = startedAtMs === null || finishedAtMs === null ? null : finishedAtMs - startedAtMs;
  const ending = durationMs === null || state === "skipped" ? "" : ` after ${formatDuration(durationMs)}`;
  return `Deployment ${id} ${stateTexts[state]}${ending}${reason ? `: ${reason}` : ""}`;
}

/** The commit, why, and in which step: plain lines below the title. */
export function detailsOf({ report, step }: Message): readonly string[] {
  if (report.event === "test") return ["Messages about deployments will arrive here."];
  const { deployment } = report;
  const { ref, subject, author, problem, skipReason } = deployment;
  const commit = [`${ref.replace(/^refs\/heads\//, "")} at ${liveCommit(deployment).slice(0, 7)}`, subject]
    .filter(Boolean)
    .join(": ");
  return [
    author ? `${commit} (${author})` : commit,
    ...(problem ? [problem.detail] : []),
    ...(skipReason ? [skipReason] : []),
    ...(step && problem ? [`Step: ${step}`] : []),
  ];
}
