import { listTotals } from "#deployments/store";
import type { ServiceContext } from "./context.ts";
import type { ProjectJson } from "./shapes.ts";
import { listProjects } from "./status.ts";

/** A metric and what it is about. Counters and histograms are totals that the database has. */
interface Family {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** For each project; null: not known. */
  readonly of?: ((project: ProjectJson) => number | null) | undefined;
  /** For the service. */
  readonly value?: ((run: ServiceContext) => number) | undefined;
}

const counter = (help: string): Family => ({ type: "counter", help });
const histogram = (help: string): Family => ({ type: "histogram", help });
const gaugeOf = (of: Family["of"], help: string): Family => ({ type: "gauge", help, of });
const gauge = (value: Family["value"], help: string): Family => ({ type: "gauge", help, value });
const hasFailed = ({ last }: ProjectJson) => Number(/^(?:failed|timed_out)$/.test(last?.state ?? ""));
const goodSince = ({ live }: ProjectJson) => (live?.since == null ? null : Date.parse(live.since) / 1_000);

/** Every metric: a row of docs/metrics.md. */
export const families: Readonly<Record<string, Family>> = {
  cicd_pipeline_run_duration_seconds: histogram("How long deployments ran, by their result."),
  cicd_pipeline_run_errors_total: counter("Deployments that ended with a problem, by its code."),
  cicd_pipeline_run_active: gaugeOf(({ last }) => Number(last?.state === "running"), "Deployments that run."),
  hotpush_push_to_live_seconds: histogram("From the push to the moment in which users got its version."),
  hotpush_rollout_requests_total: counter("Requests at the proxy during roll-outs."),
  hotpush_rollout_failed_requests_total: counter("Those of them that failed."),
  hotpush_queue_waiting: gaugeOf(({ waiting }) => waiting, "Deployments that wait."),
  hotpush_paused: gaugeOf(({ paused }) => Number(paused !== null), "1 if the queue is paused."),
  hotpush_settings_faulty: gaugeOf(({ fault }) => Number(fault !== null), "1 if its settings are faulty."),
  hotpush_last_deployment_failed: gaugeOf(
    hasFailed,
    "1 if the newest one has failed or timed out; 0 while it waits or runs.",
  ),
  hotpush_last_success_timestamp_seconds: gaugeOf(goodSince, "End of the last good one, seconds since 1970."),
  hotpush_healthy: gauge(({ findFault }) => Number(findFault() === null), "0 if it cannot do its work."),
  hotpush_server_faults: gauge(({ findServerFaults }) => findServerFaults().length, "Faults of the server."),
  process_resident_memory_bytes: gauge(() => process.memoryUsage.rss(), "Resident memory of hotpush run."),
  process_start_time_seconds: gauge((run) => run.startedAtMs / 1_000, "Its start, seconds since 1970."),
};

/** A counter that is seen first when it is 1 has not grown, as Prometheus sees it: so those of alerts begin with 0. */
const zeros = [
  ["cicd_pipeline_run_duration_seconds_count", 'cicd_pipeline_result="success"'],
  ["cicd_pipeline_run_duration_seconds_count", 'cicd_pipeline_result="failure"'],
  ["hotpush_rollout_requests_total", ""],
  ["hotpush_rollout_failed_requests_total", ""],
] as const;

/**
 * What Prometheus scrapes, in its text format. The labels are bounded: projects, results and codes of problems, never the
 * number of a deployment. https://prometheus.io/docs/instrumenting/exposition_formats/
 */
export function metricsText(run: ServiceContext): string {
  const projects = listProjects(run);
  const totals = [
    ...run.projects
      .list()
      .flatMap(({ name: project }) => zeros.map(([name, labels]) => ({ project, name, labels, value: 0 }))),
    ...listTotals(run.store),
  ].map(({ project, name, labels, value }) => {
    const all = [`cicd_pipeline_name="${project}"`, labels].filter(Boolean).join();
    return { name, sample: `${name}{${all}}`, value };
  });
  const blocks = Object.entries(families).map(([name, { type, help, of, value }]) => {
    // A histogram has parts, whose names Prometheus makes of its own. A later total takes the place of a zero.
    const isOwn = new RegExp(`^${name}${type === "histogram" ? "_(?:bucket|sum|count)" : ""}$`);
    const samples = new Map(
      totals.filter((total) => isOwn.test(total.name)).map((total) => [total.sample, total.value]),
    );
    for (const project of of ? projects : [])
      samples.set(`${name}{cicd_pipeline_name="${project.name}"}`, of?.(project) ?? Number.NaN);
    if (value) samples.set(name, value(run));
    const lines = [...samples].filter(([, known]) => !Number.isNaN(known)).map((sample) => sample.join(" "));
    return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines].join("\n");
  });
  return `${blocks.join("\n")}\n`;
}
