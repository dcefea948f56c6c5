import type { Deployment } from "../deployments/deployment.ts";
import type { DeploymentStep } from "../deployments/steps.ts";
import { problems } from "../problems.ts";

/** A deployment as commands print it with --json; docs/cli.md has each member. */
export interface DeploymentJson
  extends Omit<Deployment, `${string}AtMs` | "pusher" | "requestedBy" | "cancelledBy" | "problem"> {
  readonly pusher: { readonly name: string } | null;
  readonly requestedBy: ReportedJson | null;
  readonly cancelledBy: ReportedJson | null;
  readonly problem: { readonly code: string; readonly title: string; readonly detail: string } | null;
  readonly createdAt: string;
  readonly startedAt: string | null;
  readonly liveAt: string | null;
  readonly finishedAt: string | null;
  readonly durationMs: number | null;
}

/** A person by the name that a command reported; nothing proves it. */
export interface ReportedJson {
  readonly name: string;
  readonly reported: true;
}

export interface StepJson {
  readonly attempt: number;
  readonly name: string;
  readonly startedAt: string;
  readonly durationMs: number | null;
}

/** What a follower of a deployment receives: one JSON object per line; docs/cli.md has each. */
export type ControlEvent =
  | { readonly event: "deployment"; readonly deployment: DeploymentJson }
  | LineJson
  /** A step began; the same again with `durationMs` when it is over. */
  | { readonly event: "step"; readonly step: StepJson }
  /** The log has no place that the reader could go on from: it is sent from its beginning. */
  | { readonly event: "restarted" };

/** A line that the script printed. */
export interface LineJson {
  readonly event: "line";
  readonly line: string;
  /** The place in the log at which the next line begins. */
  readonly endByte: number;
  /** null: the log does not say. */
  readonly printedAt: string | null;
}

export function lineJson({
  text,
  endByte,
  printedAtMs,
}: {
  readonly text: string;
  readonly endByte: number;
  readonly printedAtMs: number | null;
}): LineJson {
  const printedAt = printedAtMs === null ? null : instant(printedAtMs);
  return { event: "line", line: text, endByte, printedAt };
}

export function deploymentJson(deployment: Deployment): DeploymentJson {
  const {
    createdAtMs,
    startedAtMs,
    liveAtMs,
    finishedAtMs,
    problem,
    pusher,
    requestedBy,
    cancelledBy,
    ...same
  } = deployment;
  return {
    ...same,
    pusher: pusher === null ? null : { name: pusher },
    requestedBy: reportedJson(requestedBy),
    cancelledBy: reportedJson(cancelledBy),
    problem: problem && { code: problem.code, title: problems[problem.code].title, detail: problem.detail },
    createdAt: instant(createdAtMs),
    startedAt: startedAtMs === null ? null : instant(startedAtMs),
    liveAt: liveAtMs === null ? null : instant(liveAtMs),
    finishedAt: finishedAtMs === null ? null : instant(finishedAtMs),
    durationMs: startedAtMs === null || finishedAtMs === null ? null : finishedAtMs - startedAtMs,
  };
}

export function stepJson({ attempt, name, startedAtMs, endedAtMs }: DeploymentStep): StepJson {
  const durationMs = endedAtMs === null ? null : endedAtMs - startedAtMs;
  return { attempt, name, startedAt: instant(startedAtMs), durationMs };
}

export function reportedJson(name: string | null): ReportedJson | null {
  return name === null ? null : { name, reported: true };
}

/** A moment in ISO 8601, UTC. */
export function instant(ms: number): string {
  return new Date(ms).toISOString();
}
