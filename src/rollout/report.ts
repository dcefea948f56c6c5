import { dirname, join } from "node:path";
import * as v from "valibot";
import { formatDuration } from "#config/values";
import { inheritedOwner, replaceFile } from "#platform/files";
import { readForeignFile, removeForeignFile } from "#platform/foreign-files";
import { withoutSteering, wrapText } from "#platform/terminal";
import type { ProblemCode } from "#problems";
import { requestsText, type SiteRequests, siteRequests } from "#site-requests";

/** What a roll-out reports while it runs: lines for a person, or one JSON object per line (`--json`, a contract). */
export type RolloutEvent =
  | {
      readonly event: "started";
      readonly project: string;
      readonly commit: string;
      readonly services: readonly string[];
    }
  | {
      readonly event: "step";
      /** Null if it concerns all services. */
      readonly service: string | null;
      readonly step: RolloutStep;
      readonly durationMs: number;
      readonly detail: string;
    }
  | { readonly event: "output"; readonly step: RolloutStep; readonly line: string }
  /** Users have the new version of a service, and for so long it is watched. The step `guard` ends that. */
  | { readonly event: "guarding"; readonly service: string; readonly guardMs: number }
  | { readonly event: "note"; readonly service: string | null; readonly text: string }
  | {
      readonly event: "requests";
      /** Those that went through the proxy meanwhile; null if Caddy does not log them. */
      readonly sites: readonly SiteRequests[] | null;
      /** What to add to the sites in the Caddyfile; none on the server, where `hotpush upgrade` does it. */
      readonly missingLines: readonly string[];
    }
  /** What the registries have of the watched images, and is rolled out: each as name@digest. */
  | { readonly event: "pinned"; readonly images: readonly string[] }
  /** What serves now is a good version: the image of each service. */
  | {
      readonly event: "version";
      readonly images: readonly { readonly service: string; readonly image: string; readonly id: string }[];
    }
  | { readonly event: "finished"; readonly durationMs: number; readonly services: readonly ServiceOutcome[] }
  | {
      readonly event: "failed";
      readonly code: ProblemCode;
      readonly detail: string;
      readonly evidence: readonly string[];
    };

export type RolloutStep =
  | "lock"
  | "read"
  | "recover"
  | "pull"
  | "build"
  | "tag"
  | "push"
  | "deploy"
  | "update"
  | "start"
  | "healthy"
  | "switch"
  | "check"
  | "drain"
  | "guard"
  | "stop"
  | "recreate"
  | "run"
  | "abandon"
  | "roll back"
  | "prune";

/** What the end of the report says of a service. */
export interface ServiceOutcome {
  readonly service: string;
  readonly outcome: "unchanged" | "started" | "rolled" | "recreated" | "ran" | "skipped" | "removed";
  readonly old: readonly string[];
  readonly new: readonly string[];
  readonly healthyAfterMs: number | null;
  readonly drainedMs: number | null;
  /** How long it was down, if it was recreated. */
  readonly downtimeMs: number | null;
  /** Why it was recreated. */
  readonly reason: string | null;
}

const nothingSeen = { healthyAfterMs: null, drainedMs: null, downtimeMs: null, reason: null };

interface Named {
  readonly name: string;
}

/** The outcome of `service`; what is not given in `seen` was not observed. */
export function outcomeOf(
  service: Named,
  outcome: ServiceOutcome["outcome"],
  containers: { readonly old?: readonly Named[]; readonly new?: readonly Named[] },
  seen: Partial<Omit<ServiceOutcome, "service" | "outcome" | "old" | "new">> = {},
): ServiceOutcome {
  const names = (named: readonly Named[] = []) => named.map(({ name }) => name);
  const old = names(containers.old);
  const fresh = names(containers.new);
  return { service: service.name, outcome, old, new: fresh, ...nothingSeen, ...seen };
}

export type Report = (event: RolloutEvent) => void;

/** The receiver of events, and the service that they are about; null: all services. */
export interface ReportScope {
  readonly report: Report;
  readonly service?: Named;
}

/** Reports a sentence about the service. */
export function note({ report, service }: ReportScope, text: string): void {
  report({ event: "note", service: service?.name ?? null, text });
}

/** What a step that failed has in the place of its result. */
const failedDetail = "FAILED";

/** Does `work` and reports it as `step` with its duration; `detail` describes the result, which else is the text itself. */
export async function timed<Result>(
  { report, service }: ReportScope,
  step: RolloutStep,
  work: () => Promise<Result>,
  detail: string | ((result: Result) => string) = String,
): Promise<{ readonly result: Result; readonly durationMs: number }> {
  const startedMs = performance.now();
  const reportStep = (text: string) => {
    const durationMs = Math.round(performance.now() - startedMs);
    report({ event: "step", service: service?.name ?? null, step, durationMs, detail: text });
    return durationMs;
  };
  try {
    const result = await work();
    return { result, durationMs: reportStep(typeof detail === "string" ? detail : detail(result)) };
  } catch (error) {
    reportStep(failedDetail);
    throw error;
  }
}

/** Prints each event as one line of JSON with its time (`at`, RFC 3339). */
export function reportJson(write: (text: string) => void): Report {
  return (event) => write(`${JSON.stringify({ at: new Date().toISOString(), ...event })}\n`);
}

/** Prints each event as lines for a person: the service, the step, its duration, and the result. */
export function reportText(write: (text: string) => void): Report {
  return (event) => {
    // Output of containers and builds must not control the terminal that shows it.
    for (const line of linesOf(event)) write(`${withoutSteering(line, { kept: "\t\n" })}\n`);
  };
}

function linesOf(event: RolloutEvent): readonly string[] {
  switch (event.event) {
    case "started": {
      const { project, commit, services } = event;
      return wrapped(`Rolling out ${project} at ${commit.slice(0, 12)}: ${services.join(", ")}`);
    }
    case "step":
      return columns(event.service, event.step, formatDuration(event.durationMs), event.detail);
    case "output":
      return [`    ${event.line}`];
    case "note":
      return columns(event.service, "note", "", event.text);
    case "guarding":
      return columns(event.service, "live", "", `guarded for ${formatDuration(event.guardMs)}`);
    case "pinned":
      return event.images.flatMap((image) => columns(null, "pinned", "", image));
    case "version":
      return [];
    case "requests":
      return ["", ...requestLines(event)];
    case "finished":
      return [
        "",
        ...event.services.flatMap((one) => columns(one.service, one.outcome, "", outcomeText(one))),
        "",
        `Done in ${formatDuration(event.durationMs)}.`,
      ];
    case "failed":
      // Last and in one line, because the history quotes the last line of a script.
      return ["", ...event.evidence.map((line) => `    ${line}`), `FAILED: ${event.detail}`];
  }
}

function requestLines(event: Extract<RolloutEvent, { event: "requests" }>): readonly string[] {
  const { sites, missingLines } = event;
  if (sites?.length === 0) return ["No request came through the proxy."];
  if (sites !== null) return sites.flatMap((site) => wrapped(requestsText(site)));
  const intro = "The requests were not counted, because Caddy does not log them.";
  const advice =
    missingLines.length === 0
      ? "Write its new Caddyfile: hotpush upgrade"
      : "Add to each site in the Caddyfile that leads to your services:";
  return [...wrapped(`${intro} ${advice}`), ...missingLines];
}

function columns(service: string | null, step: string, duration: string, detail: string): readonly string[] {
  const line = `  ${(service ?? "").padEnd(14)} ${step.padEnd(9)} ${duration.padStart(8)}  ${detail}`;
  return wrapped(line.trimEnd(), 17);
}

/** How the service was replaced, and how long it was down. */
function outcomeText(one: ServiceOutcome): string {
  const { outcome, healthyAfterMs, drainedMs, downtimeMs, reason } = one;
  if (outcome === "unchanged") return "";
  if (outcome === "ran") return "to its end";
  if (outcome === "skipped") return "not run in a roll back";
  const old = one.old.join(", ");
  const fresh = one.new.join(", ");
  if (outcome === "removed") return `${old} (no replicas)`;
  const times = [
    ...(healthyAfterMs === null ? [] : [`healthy after ${formatDuration(healthyAfterMs)}`]),
    ...(drainedMs === null ? [] : [`drained in ${formatDuration(drainedMs)}`]),
    ...(downtimeMs === null ? [] : [`downtime ${formatDuration(downtimeMs)} (${reason})`]),
  ];
  return [old === "" ? `${fresh} (first start)` : `${old} → ${fresh}`, ...times].join(", ");
}

/** No line of a report is wider, but for a long word, and for what builds and containers print. */
const widest = 80;

function wrapped(text: string, indent: number = 8): readonly string[] {
  return wrapText(text, widest, " ".repeat(indent));
}

/** The name in the compose file, and the digest. */
export const pinnedImage = /^[!-~]{1,255}@sha256:[0-9a-f]{64}$/;
const shortText = v.pipe(v.string(), v.regex(/^[\x20-\x7e]{1,255}$/));
const liveImage = v.strictObject({ service: shortText, image: shortText, id: shortText });
const guarded = v.strictObject({ service: shortText, verdict: shortText });

/** A list that is kept for the receipt of a deployment; null if it is not known, or too long. */
function listOf<Item extends v.GenericSchema>(item: Item) {
  return v.fallback(v.nullable(v.pipe(v.array(item), v.maxLength(50))), null);
}

/** The last moment of a Date, in milliseconds. */
const lastMomentMs = 8.64e15;

/** What a roll-out reports to the service whose deployment it is part of. The script's user may have written anything instead. */
const deploymentReport = v.object({
  /** When the last of its services got the requests of its users; null if none did, or the old version serves again. */
  liveAtMs: v.fallback(
    v.nullable(v.pipe(v.number(), v.safeInteger(), v.minValue(0), v.maxValue(lastMomentMs))),
    null,
  ),
  /** Null if they were not counted. */
  requests: listOf(siteRequests),
  /** Whether a new version has the requests and is only watched: until the guard of its last service ends. */
  isGuarding: v.fallback(v.boolean(), false),
  /** Whether the guard, or a person while it watched, has taken the new version back. */
  isTakenBack: v.fallback(v.boolean(), false),
  /** What serves now, of each service. */
  images: listOf(liveImage),
  /** What the registries had when it began, and it rolls out; each as name@digest; null if they were not asked. */
  pinned: listOf(v.pipe(v.string(), v.regex(pinnedImage))),
  /** What the guard said of each service that it watched. */
  guard: listOf(guarded),
});

export type DeploymentReport = Readonly<v.InferOutput<typeof deploymentReport>>;

/** That of a deployment without a roll-out. */
export const noReport: DeploymentReport = v.parse(deploymentReport, {});
const longestBytes = 64 * 1024;

function reportPath(statePath: string, deploymentId: number): string {
  return join(statePath, "rollout", `deployment-${deploymentId}.json`);
}

/**
 * Passes events on, and leaves the service a report of them.
 *
 * @param statePath STATE_PATH, as the deploy script has it
 * @param deploymentId DEPLOY_ID; without it there is no such service
 */
export function reportToService(report: Report, statePath: string, deploymentId: string | undefined): Report {
  const id = Number(deploymentId);
  if (!Number.isSafeInteger(id) || id < 1) return report;
  let known: DeploymentReport = { ...noReport, guard: [] };
  const guarding = new Set<string>();
  return (event) => {
    if (event.event === "guarding") guarding.add(event.service);
    if (event.event === "step" && event.step === "guard") guarding.delete(event.service ?? "");
    known = { ...withEvent(known, event), isGuarding: guarding.size > 0 };
    // First: who reads the event may ask the service.
    if (isWritten(event)) write(reportPath(statePath, id), known);
    report(event);
  };
}

function withEvent(known: DeploymentReport, event: RolloutEvent): DeploymentReport {
  if (event.event === "step" && event.detail !== failedDetail) {
    if (event.step === "switch") return { ...known, liveAtMs: Date.now() };
    if (event.step === "roll back") return { ...known, liveAtMs: null };
  }
  if (event.event === "step" && event.step === "guard") {
    const verdict = { service: event.service ?? "", verdict: event.detail };
    return { ...known, guard: [...(known.guard ?? []), verdict] };
  }
  if (event.event === "version") return { ...known, images: [...event.images] };
  if (event.event === "pinned") return { ...known, pinned: [...event.images] };
  if (event.event === "requests") return { ...known, requests: event.sites && [...event.sites] };
  if (event.event !== "failed") return known;
  const isTakenBack = event.code === "version_worse" || event.code === "version_unwanted";
  return { ...known, liveAtMs: null, isTakenBack };
}

/** At the switch the service already knows that the new version is live. */
function isWritten(event: RolloutEvent): boolean {
  if (event.event === "step") return ["switch", "roll back", "guard"].includes(event.step);
  return ["pinned", "guarding", "finished", "failed"].includes(event.event);
}

/** The deployment counts, not what is known about it. */
function write(path: string, known: DeploymentReport): void {
  try {
    replaceFile(path, JSON.stringify(known), { mode: 0o644, owner: inheritedOwner(dirname(path)) });
  } catch {
    // A full disk: nothing is recorded.
  }
}

/** Reads the report of the roll-out of a deployment so far. */
export function readDeploymentReport(statePath: string, deploymentId: number): DeploymentReport {
  try {
    const text = readForeignFile(reportPath(statePath, deploymentId), { mostBytes: longestBytes }).toString();
    return v.parse(deploymentReport, JSON.parse(text));
  } catch {
    return noReport;
  }
}

/** Removes a report that is recorded. If it cannot be removed, it does no harm. */
export function removeDeploymentReport(statePath: string, deploymentId: number): void {
  try {
    removeForeignFile(reportPath(statePath, deploymentId));
  } catch {
    // The script's user has something else in the place of the directory, or there is none.
  }
}
