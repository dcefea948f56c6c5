import type { Problem, ProblemCode } from "../../problems.ts";

/** What a roll-out tells while it goes on: lines for a person, or one JSON object a line (`--json`, a contract). */
export type RolloutEvent =
  | {
      readonly event: "started";
      readonly project: string;
      readonly commit: string;
      readonly services: readonly string[];
    }
  | {
      readonly event: "step";
      /** Null where it is about all services. */
      readonly service: string | null;
      readonly step: Step;
      readonly durationMs: number;
      readonly detail: string;
    }
  | { readonly event: "output"; readonly step: Step; readonly line: string }
  | { readonly event: "note"; readonly service: string | null; readonly text: string }
  | { readonly event: "finished"; readonly durationMs: number; readonly services: readonly ServiceOutcome[] }
  | {
      readonly event: "failed";
      readonly code: ProblemCode;
      readonly detail: string;
      readonly evidence: readonly string[];
    };

export type Step =
  | "lock"
  | "read"
  | "heal"
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
  | "stop"
  | "recreate"
  | "run"
  | "abandon"
  | "roll back"
  | "prune";

/** A row of the closing table. */
export interface ServiceOutcome {
  readonly service: string;
  readonly outcome:
    | "unchanged"
    | "started"
    | "rolled"
    | "recreated"
    | "ran"
    | "skipped"
    | "postponed"
    | "removed";
  readonly old: readonly string[];
  readonly new: readonly string[];
  readonly healthyAfterMs: number | null;
  readonly drainedMs: number | null;
  /** How long it was seen not to serve; null if it did not serve before, or if nobody could see that. */
  readonly downtimeMs: number | null;
  /** Why it was recreated; if it was rolled, where that was seen, or why it could not be. */
  readonly reason: string | null;
}

const nothingSeen = { healthyAfterMs: null, drainedMs: null, downtimeMs: null, reason: null };

/** The row of a service that was left as it is. */
export function unchanged(
  service: { readonly name: string },
  containers: readonly { readonly name: string }[],
): ServiceOutcome {
  const names = containers.map(({ name }) => name);
  return { service: service.name, outcome: "unchanged", old: names, new: names, ...nothingSeen };
}

/** The row of a service that ran to its end in `containers`. */
export function ran(
  service: { readonly name: string },
  containers: readonly { readonly name: string }[],
): ServiceOutcome {
  const names = containers.map(({ name }) => name);
  return { service: service.name, outcome: "ran", old: [], new: names, ...nothingSeen };
}

/** The row of Hotpush's own service if it is replaced after the deployment, for `reason`. */
export function postponed(
  service: { readonly name: string },
  containers: readonly { readonly name: string }[],
  reason: string,
): ServiceOutcome {
  const old = containers.map(({ name }) => name);
  return { service: service.name, outcome: "postponed", old, new: [], ...nothingSeen, reason };
}

/** Says that a one-shot service is left out of a roll back. */
export function reportSkipped(report: Report, service: { readonly name: string }): void {
  const text = "is not run in a roll back: what it changed stays as it is";
  report({ event: "note", service: service.name, text });
}

/** The row of a one-shot service that is left out of a roll back. */
export function skipped(service: { readonly name: string }): ServiceOutcome {
  return { service: service.name, outcome: "skipped", old: [], new: [], ...nothingSeen };
}

export type Report = (event: RolloutEvent) => void;

/** The ending of a roll-out that was refused or failed. */
export interface Failure extends Problem {
  readonly kind: "failed";
}

export type RolloutEnding =
  | { readonly kind: "succeeded"; readonly commit: string; readonly services: readonly ServiceOutcome[] }
  | Failure;

/** Reports a failure as the last event, and gives it as the ending. */
export function reportFailure(report: Report, problem: Problem): Failure {
  const { code, detail, evidence = [] } = problem;
  report({ event: "failed", code, detail, evidence });
  return { ...problem, kind: "failed" };
}

/** Does `work` and reports it as `step` with the time it took; `detailOf` says what came of it. */
export async function timed<Result>(
  report: Report,
  service: string | null,
  step: Step,
  work: () => Promise<Result>,
  detailOf: (result: Result) => string,
): Promise<{ readonly result: Result; readonly durationMs: number }> {
  const startedMs = performance.now();
  const tell = (detail: string) => {
    const durationMs = Math.round(performance.now() - startedMs);
    report({ event: "step", service, step, durationMs, detail });
    return durationMs;
  };
  try {
    const result = await work();
    return { result, durationMs: tell(detailOf(result)) };
  } catch (error) {
    tell("FAILED");
    throw error;
  }
}
