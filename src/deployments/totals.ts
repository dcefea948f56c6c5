import type { Store } from "#platform/sqlite";
import type { Deployment, DeploymentState } from "./deployment.ts";

/** A sample of a metric that only grows. Its name and labels are Prometheus's, without the project. */
export interface Total {
  readonly project: string;
  readonly name: string;
  readonly labels: string;
  readonly value: number;
}

/** The upper ends of the histograms' buckets. */
export const bucketSeconds = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800] as const;

/**
 * How a deployment ended, in the words of OpenTelemetry's conventions for CI/CD (`cicd.pipeline.result`).
 * https://opentelemetry.io/docs/specs/semconv/cicd/cicd-metrics/
 */
const results: Partial<Record<DeploymentState, string>> = {
  succeeded: "success",
  failed: "failure",
  timed_out: "timeout",
  cancelled: "cancellation",
  superseded: "cancellation",
  skipped: "skip",
};

/**
 * Adds a deployment that has ended to the totals of its project, which stay when it is pruned. Call it in the transaction that
 * records the ending. One that was never started counts nowhere.
 */
export function addToTotals(store: Store, deployment: Deployment): void {
  const { project, state, attempts, startedAtMs, finishedAtMs } = deployment;
  const result = results[state];
  if (result === undefined || attempts === 0 || startedAtMs === null || finishedAtMs === null) return;
  const add = (name: string, labels: string, value: number) => {
    const sql = `INSERT INTO totals (project, name, labels, value) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET value = value + excluded.value`;
    store.run(sql, project, name, labels, value);
  };
  const label = `cicd_pipeline_result="${result}"`;
  addToHistogram(add, "cicd_pipeline_run_duration_seconds", label, finishedAtMs - startedAtMs);
  if (deployment.problem !== null)
    add("cicd_pipeline_run_errors_total", `error_type="${deployment.problem.code}"`, 1);
  if (state === "succeeded" && deployment.trigger === "push")
    addToHistogram(
      add,
      "hotpush_push_to_live_seconds",
      "",
      (deployment.liveAtMs ?? finishedAtMs) - deployment.createdAtMs,
    );
  for (const { requests, failed } of deployment.requests ?? []) {
    add("hotpush_rollout_requests_total", "", requests);
    add("hotpush_rollout_failed_requests_total", "", failed);
  }
}

type Add = (name: string, labels: string, value: number) => void;

function addToHistogram(add: Add, name: string, labels: string, durationMs: number): void {
  const seconds = Math.max(0, durationMs) / 1_000;
  for (const end of [...bucketSeconds, "+Inf"] as const)
    add(
      `${name}_bucket`,
      [labels, `le="${end}"`].filter(Boolean).join(),
      Number(seconds <= Number(end) || end === "+Inf"),
    );
  add(`${name}_sum`, labels, seconds);
  add(`${name}_count`, labels, 1);
}

/** All totals, by project. */
export function listTotals(store: Store): readonly Total[] {
  const rows = store.all("SELECT project, name, labels, value FROM totals ORDER BY project, rowid");
  return rows.map(({ project, name, labels, value }) => ({
    ...{ project: String(project), name: String(name), labels: String(labels), value: Number(value) },
  }));
}
