import * as v from "valibot";
import type { Deployment } from "#deployments/deployment";
import type { Hold } from "#deployments/queue";
import type { DeploymentStep, Pause } from "#deployments/store";
import { problems } from "#problems";

/** What the calls give, as JSON: docs/cli.md has each member. The OpenAPI document names each of these shapes. */

type Frozen<Of> = Of extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : Of extends object
    ? { readonly [Key in keyof Of]: Frozen<Of[Key]> }
    : Of;

/** What a value of a shape is. */
export type Shaped<Of extends v.GenericSchema> = Frozen<v.InferOutput<Of>>;

const text = v.string();
const textOrNull = v.nullable(text);
const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const countOrNull = v.nullable(count);
const moment = v.pipe(v.string(), v.isoTimestamp());
const momentOrNull = v.nullable(moment);

/** A person by the name that a command reported; nothing proves it. */
export const reported = v.strictObject({ name: text, reported: v.literal(true) });
export type ReportedJson = Shaped<typeof reported>;

const answers = v.strictObject({ answers: count, serverErrors: count });
const siteRequests = v.strictObject({
  ...{ host: text, requests: count, failed: count, brokeOff: count, left: count },
  ...{ before: answers, after: answers },
});

export const states = [
  ...(["queued", "running", "succeeded", "failed", "timed_out", "cancelled"] as const),
  ...(["superseded", "interrupted", "skipped"] as const),
] as const;

export const deployment = v.strictObject({
  id: count,
  project: text,
  trigger: v.picklist(["push", "catch-up", "manual", "rollback"]),
  ref: text,
  before: textOrNull,
  commit: text,
  checkedOutCommit: textOrNull,
  subject: textOrNull,
  author: textOrNull,
  pusher: v.nullable(v.strictObject({ name: text })),
  requestedBy: v.nullable(reported),
  cancelledBy: v.nullable(reported),
  repository: textOrNull,
  host: textOrNull,
  deliveryId: textOrNull,
  state: v.picklist(states),
  attempts: count,
  supersededBy: countOrNull,
  exitCode: v.nullable(v.number()),
  problem: v.nullable(v.strictObject({ code: text, title: text, detail: text })),
  skipReason: textOrNull,
  waitReason: textOrNull,
  requests: v.nullable(v.array(siteRequests)),
  createdAt: moment,
  startedAt: momentOrNull,
  liveAt: momentOrNull,
  finishedAt: momentOrNull,
  durationMs: v.nullable(v.number()),
});
export type DeploymentJson = Shaped<typeof deployment>;

export const step = v.strictObject({
  ...{ attempt: count, name: text, startedAt: moment, durationMs: v.nullable(v.number()) },
});
export type StepJson = Shaped<typeof step>;

export const pause = v.strictObject({ since: moment, reason: textOrNull, by: v.nullable(reported) });
export type PauseJson = Shaped<typeof pause>;

/** Why no deployment of any project starts. */
export const hold = v.strictObject({ since: moment, reason: text, by: v.nullable(reported) });
export type HoldJson = Shaped<typeof hold>;

const line = v.strictObject({
  ...{ event: v.literal("line"), line: text },
  // The place in the log at which the next line begins.
  endByte: count,
  // null: the log does not say.
  printedAt: momentOrNull,
});

/** What a reader of a deployment's events receives; docs/cli.md has each. */
export const event = v.variant("event", [
  v.strictObject({ event: v.literal("deployment"), deployment }),
  line,
  // A step began; the same again with `durationMs` when it is over.
  v.strictObject({ event: v.literal("step"), step }),
  // The log has no place that the reader could go on from: it is sent from its beginning.
  v.strictObject({ event: v.literal("restarted") }),
]);
export type ControlEvent = Shaped<typeof event>;
export type LineJson = Extract<ControlEvent, { readonly event: "line" }>;

/** `before` and `after` are where the page before this one and the one after it end; null: there is none. */
export const logPage = v.strictObject({
  ...{ lines: v.array(line), firstNumber: count, before: countOrNull, after: countOrNull },
});
export type LogPageJson = Shaped<typeof logPage>;

/** What the holder of all deployments receives: `waiting` at most once, then `quiet`. */
export const holdEvent = v.variant("event", [
  v.strictObject({ event: v.literal("waiting"), running: v.array(deployment) }),
  // Nothing runs, and nothing starts as long as the connection lasts.
  v.strictObject({ event: v.literal("quiet") }),
]);
export type HoldEvent = Shaped<typeof holdEvent>;

/** `next`: older ones follow with `before` of this number; null: these were all. */
export const history = v.strictObject({ deployments: v.array(deployment), next: countOrNull });
export type HistoryJson = Shaped<typeof history>;

export const oneDeployment = v.strictObject({ deployment, steps: v.array(step), logBytes: count });
export type OneDeploymentJson = Shaped<typeof oneDeployment>;

/** A deployment that was asked for, as it is by now, and the pause that it waits for, if any. */
export const requested = v.strictObject({ deployment, paused: v.nullable(pause) });
export type RequestedJson = Shaped<typeof requested>;

export const paused = v.strictObject({ project: text, paused: v.nullable(pause) });

const live = v.strictObject({ commit: text, subject: textOrNull, author: textOrNull, since: momentOrNull });

export const project = v.strictObject({
  name: text,
  repoPath: textOrNull,
  // Where people see its repository, by the remote of the checkout; null if that is not known.
  webUrl: textOrNull,
  branches: v.array(text),
  // What the last successful deployment has made live; null if there was none.
  live: v.nullable(live),
  // The one that runs, else the newest that was neither superseded nor skipped; null if there was none.
  last: v.nullable(deployment),
  waiting: count,
  paused: v.nullable(pause),
  // What is wrong with its settings, or null.
  fault: textOrNull,
  // Whether it has settings; if not, its pushes are refused and nothing is started.
  isServed: v.boolean(),
});
export type ProjectJson = Shaped<typeof project>;
export const projects = v.strictObject({ projects: v.array(project) });

/** What is in force of a project, without secrets. */
export const settings = v.strictObject({
  ...{ project: text, repoPath: text, repository: textOrNull, branches: v.array(text), fault: textOrNull },
  ...{ deployPaths: v.array(text), deployEnv: v.array(text), notifies: v.array(text) },
  ...{ checksSignatures: v.boolean(), hasPreviousSecret: v.boolean() },
  ...{ deployTimeoutMs: count, deploySilenceMs: count, catchUpIntervalMs: count },
});

/** Whether each target took the test message: null, or why not. */
export const notified = v.strictObject({
  ...{ project: text, results: v.array(v.strictObject({ target: text, fault: textOrNull })) },
});
export type NotifyJson = Shaped<typeof notified>;

const secret = v.strictObject({
  ...{ knownSince: moment, lastUsedAt: momentOrNull, host: textOrNull, deliveryId: textOrNull },
});
export type SecretJson = Shaped<typeof secret>;

const secrets = v.strictObject({
  current: secret,
  previous: v.nullable(secret),
  // null if there is no previous one.
  canDropPrevious: v.nullable(v.boolean()),
  advice: textOrNull,
});
export type SecretsJson = Shaped<typeof secrets>;

const running = v.strictObject({ deployment, step: v.nullable(step) });
const server = {
  ...{ version: text, startedAt: moment, statePath: text },
  // null: another process receives the pushes.
  ...{ address: textOrNull, port: countOrNull },
  waiting: v.array(deployment),
  last: v.array(deployment),
  health: v.strictObject({ isHealthy: v.boolean(), detail: textOrNull }),
  // What is wrong with the server: a sentence for each fault.
  serverFaults: v.array(text),
  // null if deployments of all projects may start.
  hold: v.nullable(hold),
  // null if pushes come over a port of this process.
  inbox: v.nullable(v.strictObject({ reachedAt: momentOrNull, failure: textOrNull })),
};

export const status = v.strictObject({
  ...server,
  ...{ project: text, repoPath: text, branches: v.array(text) },
  // null if nothing runs; `step` is null before the first one.
  running: v.nullable(running),
  catchUp: v.strictObject({ intervalMs: count, lookedAt: momentOrNull, failure: textOrNull }),
  secrets,
  paused: v.nullable(pause),
  // What is wrong with the project's settings, or null.
  fault: textOrNull,
});
export type StatusJson = Shaped<typeof status>;

export const wholeStatus = v.strictObject({
  ...server,
  running: v.array(running),
  projects: v.array(project),
});
export type WholeStatusJson = Shaped<typeof wholeStatus>;

const check = v.strictObject({
  ...{ group: text, subject: text, outcome: v.picklist(["ok", "skipped", "faulty"]), fact: textOrNull },
  faults: v.array(
    v.strictObject({
      severity: v.picklist(["problem", "warning"]),
      ...{ text, command: textOrNull, change: textOrNull },
    }),
  ),
});
export type CheckJson = Shaped<typeof check>;

/** What `hotpush doctor` has found about a project, and whether it looks again at the moment. */
export const examination = v.strictObject({
  ...{ project: text, isRunning: v.boolean() },
  // null: it was never examined since the service started.
  examinedAt: momentOrNull,
  // As `hotpush doctor --json` prints it; null: not known, or the doctor could not say.
  report: v.nullable(
    v.looseObject({
      problems: count,
      warnings: count,
      passed: count,
      skipped: count,
      checks: v.array(check),
    }),
  ),
});
export type ExaminationJson = Shaped<typeof examination>;

export const roles = ["viewer", "operator"] as const;
/** Where a browser is: as the page reports it, nothing proves it. */
export const session = v.strictObject({
  ...{ id: count, name: text, role: v.picklist(roles), createdAt: moment, lastSeenAt: moment },
  ...{ address: textOrNull, agent: textOrNull },
});
export type SessionJson = Shaped<typeof session>;

export const scopes = ["read", "deploy"] as const;
export const token = v.strictObject({
  ...{ id: count, name: text, scope: v.picklist(scopes), createdAt: moment, lastUsedAt: momentOrNull },
});
export type TokenJson = Shaped<typeof token>;

/** Who asks: the name and number of a session or a token, and what it may do. */
export const visitor = v.strictObject({
  ...{ name: text, kind: v.picklist(["session", "token"]), role: v.picklist(roles), id: count },
});
export type VisitorJson = Shaped<typeof visitor>;

export const audit = v.strictObject({
  entries: v.array(
    v.strictObject({
      ...{ at: moment, visitor: text, action: text, project: textOrNull, deployment: countOrNull },
      ...{ address: textOrNull, status: count },
    }),
  ),
  refusals: v.array(
    v.strictObject({ visitor: text, action: text, count, address: textOrNull, lastAt: moment }),
  ),
});
export type AuditJson = Shaped<typeof audit>;

/** A refusal of RFC 9457. */
export const problem = v.strictObject({
  ...{ type: text, title: text, status: count, detail: text, instance: text, code: text },
});

/** The shapes by the names that the OpenAPI document gives them. */
export const namedShapes = {
  ...{ Problem: problem, Visitor: visitor, Reported: reported, Pause: pause, Project: project, Step: step },
  ...{ Projects: projects, Deployment: deployment, Deployments: history, OneDeployment: oneDeployment },
  ...{ Examination: examination, Paused: paused, Requested: requested, Status: status, Session: session },
  ...{ WholeStatus: wholeStatus, Event: event, Settings: settings },
} satisfies Readonly<Record<string, v.GenericSchema>>;

export function deploymentJson(recorded: Deployment): DeploymentJson {
  const { createdAtMs, startedAtMs, liveAtMs, finishedAtMs, ...same } = recorded;
  const { problem: found, pusher, requestedBy, cancelledBy } = recorded;
  return {
    ...same,
    pusher: pusher === null ? null : { name: pusher },
    requestedBy: reportedJson(requestedBy),
    cancelledBy: reportedJson(cancelledBy),
    problem: found && { code: found.code, title: problems[found.code].title, detail: found.detail },
    createdAt: instant(createdAtMs),
    startedAt: instantOrNull(startedAtMs),
    liveAt: instantOrNull(liveAtMs),
    finishedAt: instantOrNull(finishedAtMs),
    durationMs: startedAtMs === null || finishedAtMs === null ? null : finishedAtMs - startedAtMs,
  };
}

export function stepJson({ attempt, name, startedAtMs, endedAtMs }: DeploymentStep): StepJson {
  const durationMs = endedAtMs === null ? null : endedAtMs - startedAtMs;
  return { attempt, name, startedAt: instant(startedAtMs), durationMs };
}

export function lineJson(line: {
  readonly text: string;
  readonly endByte: number;
  readonly printedAtMs: number | null;
}): LineJson {
  return {
    event: "line",
    line: line.text,
    endByte: line.endByte,
    printedAt: instantOrNull(line.printedAtMs),
  };
}

export function pauseJson(found: Pause | null): PauseJson | null {
  if (found === null) return null;
  const { pausedAtMs, reason, pausedBy } = found;
  return { since: instant(pausedAtMs), reason, by: reportedJson(pausedBy) };
}

export function holdJson([first]: readonly Hold[]): HoldJson | null {
  return first
    ? { since: instant(first.sinceMs), reason: first.reason, by: reportedJson(first.heldBy) }
    : null;
}

export function reportedJson(name: string | null): ReportedJson | null {
  return name === null ? null : { name, reported: true };
}

/** A moment in ISO 8601, UTC. */
export function instant(ms: number): string {
  return new Date(ms).toISOString();
}

export function instantOrNull(ms: number | null): string | null {
  return ms === null ? null : instant(ms);
}
