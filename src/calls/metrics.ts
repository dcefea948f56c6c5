import { listTotals } from "#deployments/store";
import type { ServerContext } from "./context.ts";
import type { ProjectJson } from "./shapes.ts";
import { listProjects } from "./status.ts";

/** A metric and what it is about. */
interface Family {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
}

/** Every metric: a row of docs/metrics.md. */
export const families: Readonly<Record<string, Family>> = {
  cicd_pipeline_run_duration_seconds: {
    type: "histogram",
    help: "How long deployments ran, by their result.",
  },
  cicd_pipeline_run_errors_total: {
    type: "counter",
    help: "Deployments that ended with a problem, by its code.",
  },
  cicd_pipeline_run_active: { type: "gauge", help: "Deployments that run." },
  hotpush_push_to_live_seconds: {
    type: "histogram",
    help: "From the push to the moment in which users got its version.",
  },
  hotpush_rollout_requests_total: { type: "counter", help: "Requests at the proxy during roll-outs." },
  hotpush_rollout_failed_requests_total: { type: "counter", help: "Those of them that failed." },
  hotpush_queue_waiting: { type: "gauge", help: "Deployments that wait." },
  hotpush_paused: { type: "gauge", help: "1 if the queue is paused." },
  hotpush_settings_faulty: { type: "gauge", help: "1 if the settings of the project are faulty." },
  hotpush_last_deployment_failed: {
    type: "gauge",
    help: "1 if the newest deployment that ran has failed or timed out.",
  },
  hotpush_last_success_timestamp_seconds: {
    type: "gauge",
    help: "When the last good deployment ended, in seconds since 1970.",
  },
  hotpush_healthy: { type: "gauge", help: "0 if the service cannot do its work." },
  hotpush_server_faults: { type: "gauge", help: "What is wrong with the server, in number." },
  process_resident_memory_bytes: { type: "gauge", help: "Resident memory of hotpush run." },
  process_start_time_seconds: { type: "gauge", help: "When hotpush run was started, in seconds since 1970." },
};

interface Sample {
  /** With the ending that Prometheus gives the parts of a histogram. */
  readonly name: string;
  readonly labels: string;
  readonly value: number;
}

/**
 * What Prometheus scrapes, in its text format. The labels are bounded: projects, results and codes of problems, never the
 * number of a deployment. https://prometheus.io/docs/instrumenting/exposition_formats/
 */
export function metricsText(sources: ServerContext): string {
  const samples = [...totals(sources), ...listProjects(sources).flatMap(ofProject), ...ofService(sources)];
  const blocks = Object.entries(families).map(([name, { type, help }]) => {
    const own = samples.filter((sample) => familyOf(sample.name) === name).map(lineOf);
    return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...own].join("\n");
  });
  return `${blocks.join("\n")}\n`;
}

function familyOf(name: string): string {
  const base = name.replace(/_(?:bucket|sum|count)$/, "");
  return families[base]?.type === "histogram" ? base : name;
}

function lineOf({ name, labels, value }: Sample): string {
  return `${name}${labels === "" ? "" : `{${labels}}`} ${value}`;
}

const pipeline = (project: string) => `cicd_pipeline_name="${project}"`;

/** A counter that is seen first when it is 1 has not grown, as Prometheus sees it: so those of alerts begin with 0. */
const zeros = [
  ["cicd_pipeline_run_duration_seconds_count", 'cicd_pipeline_result="success"'],
  ["cicd_pipeline_run_duration_seconds_count", 'cicd_pipeline_result="failure"'],
  ["hotpush_rollout_requests_total", ""],
  ["hotpush_rollout_failed_requests_total", ""],
] as const;

function totals(sources: ServerContext): readonly Sample[] {
  const known = new Map<string, Sample>();
  const put = (project: string, name: string, labels: string, value: number) => {
    const all = [pipeline(project), labels].filter(Boolean).join();
    known.set(`${name}{${all}`, { name, labels: all, value });
  };
  for (const { name } of sources.projects.list())
    for (const [metric, labels] of zeros) put(name, metric, labels, 0);
  for (const { project, name, labels, value } of listTotals(sources.store)) put(project, name, labels, value);
  return [...known.values()];
}

function ofProject({ name, last, live, waiting, paused, fault }: ProjectJson): readonly Sample[] {
  const labels = pipeline(name);
  const hasFailed = last?.state === "failed" || last?.state === "timed_out";
  return [
    { name: "cicd_pipeline_run_active", labels, value: Number(last?.state === "running") },
    { name: "hotpush_queue_waiting", labels, value: waiting },
    { name: "hotpush_paused", labels, value: Number(paused !== null) },
    { name: "hotpush_settings_faulty", labels, value: Number(fault !== null) },
    { name: "hotpush_last_deployment_failed", labels, value: Number(hasFailed) },
    ...(live?.since == null
      ? []
      : [{ name: "hotpush_last_success_timestamp_seconds", labels, value: Date.parse(live.since) / 1_000 }]),
  ];
}

function ofService({ findFault, findServerFaults, startedAtMs }: ServerContext): readonly Sample[] {
  return [
    { name: "hotpush_healthy", labels: "", value: Number(findFault() === null) },
    { name: "hotpush_server_faults", labels: "", value: findServerFaults().length },
    { name: "process_resident_memory_bytes", labels: "", value: process.memoryUsage.rss() },
    { name: "process_start_time_seconds", labels: "", value: startedAtMs / 1_000 },
  ];
}
