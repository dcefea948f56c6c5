import type { ProblemCode } from "#problems";
import type { SiteRequests } from "#site-requests";

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

/** A row of the closing table. */
export interface ServiceOutcome {
  readonly service: string;
  readonly outcome: "unchanged" | "started" | "rolled" | "recreated" | "ran" | "skipped" | "removed";
  readonly old: readonly string[];
  readonly new: readonly string[];
  readonly healthyAfterMs: number | null;
  readonly drainedMs: number | null;
  /** How long it was seen to be down; null if it did not serve before, or if that was not observed. */
  readonly downtimeMs: number | null;
  /** Why it was recreated. If it was rolled: how the downtime was observed, or why it could not be. */
  readonly reason: string | null;
}

const nothingSeen = { healthyAfterMs: null, drainedMs: null, downtimeMs: null, reason: null };

interface Named {
  readonly name: string;
}

/** The row of `service`; what is not given in `seen` was not observed. */
export function outcomeOf(
  service: Named,
  outcome: ServiceOutcome["outcome"],
  containers: { readonly old?: readonly Named[]; readonly new?: readonly Named[] },
  seen: Partial<Omit<ServiceOutcome, "service" | "outcome" | "old" | "new">> = {},
): ServiceOutcome {
  const names = (named: readonly Named[] = []) => named.map(({ name }) => name);
  const [old, fresh] = [names(containers.old), names(containers.new)];
  return { service: service.name, outcome, old, new: fresh, ...nothingSeen, ...seen };
}

/** The row of a service that did not change. */
export function unchangedOutcome(service: Named, containers: readonly Named[]): ServiceOutcome {
  return outcomeOf(service, "unchanged", { old: containers, new: containers });
}

/** The row of a service that ran to its end in `containers`. */
export function ranOutcome(service: Named, containers: readonly Named[]): ServiceOutcome {
  return outcomeOf(service, "ran", { new: containers });
}

/** Reports that a roll back leaves out a one-shot service. */
export function reportSkipped(scope: ReportScope): void {
  note(scope, "is not run in a roll back: what it changed stays as it is");
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

/** Does `work` and reports it as `step` with its duration; `detail` describes the result. */
export async function timed<Result>(
  { report, service }: ReportScope,
  step: RolloutStep,
  work: () => Promise<Result>,
  detail: string | ((result: Result) => string),
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
    reportStep("FAILED");
    throw error;
  }
}
