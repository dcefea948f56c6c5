import * as v from "valibot";
import { projectNamePattern } from "#config/server";
import type { Deployment } from "#deployments/deployment";
import { deliveryIdPattern, hostPattern, mostOffered, repositoryPattern } from "#deployments/push";
import type { Hold } from "#deployments/queue";
import type { DeploymentStep, Pause } from "#deployments/store";
import { printable } from "#platform/terminal";
import { problems } from "#problems";
import type { LogLine } from "#runner/log-file";
import { siteRequests } from "#site-requests";

/** What the calls take, and what they give as JSON: docs/cli.md has each member. */

type Frozen<Of> = Of extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : Of extends object
    ? { readonly [Key in keyof Of]: Frozen<Of[Key]> }
    : Of;

/** What a value of a shape is. */
export type Shaped<Of extends v.GenericSchema> = Frozen<v.InferOutput<Of>>;

/** A number that comes as JSON, or as text in a path, a query or a form. */
function number(least: number, most: number, action: string) {
  const digits = v.pipe(v.string(), v.regex(/^\d{1,15}$/, action), v.transform(Number));
  return v.pipe(
    v.union([digits, v.number()], action),
    v.number(),
    v.integer(action),
    v.minValue(least, action),
    v.maxValue(most, action),
  );
}

const largest = Number.MAX_SAFE_INTEGER;
const roles = ["viewer", "operator"] as const;
const someText = v.pipe(
  v.string("A text was expected."),
  v.minLength(1, "The text is empty."),
  v.maxLength(1_000),
);
const personText = (mostCharacters: number) =>
  v.transform((text: string) => printable(text, mostCharacters).trim());
const noName = "Give a name, as the record will have it: --name Ann";

/** What several calls take. */
export const takes = {
  project: v.pipe(
    v.string(),
    v.regex(new RegExp(`^(?:_|${projectNamePattern})$`), "This is no name of a project."),
  ),
  number: number(1, largest, "`id` must be a number."),
  limit: v.optional(number(1, 1_000, "`limit` must be a number from 1 to 1,000.")),
  place: number(0, largest, "A place in a log must be a number of bytes."),
  before: v.optional(number(0, largest, "`before` must be the number of a deployment."), largest),
  text: someText,
  service: v.pipe(
    v.string(),
    v.regex(/^[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,99}$/, "This is no name of a service."),
  ),
  lines: number(0, 10_000, "`tail` must be a number from 0 to 10,000."),
  moment: v.pipe(
    v.string(),
    v.isoTimestamp("A moment must be in ISO 8601."),
    v.check((text) => !Number.isNaN(Date.parse(text)), "A moment must be in ISO 8601."),
  ),
  reason: v.optional(v.pipe(v.string(), v.maxLength(1_000), personText(200)), ""),
  named: {
    name: v.pipe(v.string(noName), personText(60), v.string(), v.minLength(1, noName)),
    role: v.picklist(roles, "Say what they may do: viewer or operator."),
  },
  offered: <Item extends v.GenericSchema>(item: Item) => v.pipe(v.array(item), v.maxLength(mostOffered)),
} as const;

/** The members of a call about a project, or about all. */
export const ofProjectOrAll = {
  project: v.optional(takes.project),
  /** The devices and inodes of the directories around the caller, by which the usual project is found. */
  within: v.optional(v.pipe(v.string(), v.regex(/^[\d.-]{0,6000}$/, "`within` must be devices and inodes."))),
} as const;
/** The members of a call about one project. In its path, `_` is the usual one. */
export const ofProject = { ...ofProjectOrAll, project: takes.project } as const;
/** The members of a call about a deployment, whose number is enough; `latest` is that of a project. */
export const ofDeployment = {
  id: v.union([v.literal("latest"), number(0, largest, "`id` must be a number, or `latest`.")]),
  ...ofProjectOrAll,
} as const;

/** That a secret of a project has signed a delivery. */
export const secretUse = v.strictObject({
  project: takes.project,
  slot: v.picklist(["current", "previous"]),
  host: v.pipe(v.string(), v.regex(hostPattern)),
  deliveryId: v.fallback(v.nullable(v.pipe(v.string(), v.regex(deliveryIdPattern))), null),
});

const text = v.string();
const textOrNull = v.nullable(text);
const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const countOrNull = v.nullable(count);
const moment = v.pipe(v.string(), v.isoTimestamp());
const momentOrNull = v.nullable(moment);

/** A delivery that deploys nothing, by what may be a fault of the settings, here or at the git host. */
export const missedDelivery = v.strictObject({
  project: takes.project,
  at: moment,
  host: v.pipe(v.string(), v.regex(hostPattern)),
  // `refused`: nothing proves that it is from a git host. `ignored`: it was signed.
  kind: v.picklist(["refused", "ignored"]),
  // The code of the problem, or why it was ignored.
  reason: v.pipe(v.string(), v.regex(/^[a-z_]{1,40}$/)),
  // That of an ignored push.
  repository: v.nullable(v.pipe(v.string(), v.regex(repositoryPattern))),
});
export type MissedDelivery = Shaped<typeof missedDelivery>;
// The last of each kind, if no push that is deployed came after it.
const missed = v.array(missedDelivery);

/** A person by the name that a command reported; nothing proves it. */
export const reported = v.strictObject({ name: text, reported: v.literal(true) });
export type ReportedJson = Shaped<typeof reported>;

const beginning = ["queued", "running", "succeeded", "failed", "timed_out", "cancelled"] as const;
export const state = v.picklist(
  [...beginning, "superseded", "interrupted", "skipped"],
  "There is no such state.",
);

export const deployment = v.strictObject({
  id: count,
  project: text,
  trigger: v.picklist(["push", "catch-up", "image", "manual", "rollback"]),
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
  state,
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

/** The signed receipt of a deployment: DSSE's envelope around in-toto's statement. */
export const receipt = v.strictObject({
  payloadType: v.literal("application/vnd.in-toto+json"),
  payload: text,
  signatures: v.array(v.strictObject({ keyid: text, sig: text })),
});
export const requestCounts = v.strictObject({ requests: count, failed: count });
export const publicKey = v.strictObject({ publicKey: text });

export const step = v.strictObject({
  attempt: count,
  name: text,
  startedAt: moment,
  durationMs: v.nullable(v.number()),
});
export type StepJson = Shaped<typeof step>;

export const pause = v.strictObject({ since: moment, reason: textOrNull, by: v.nullable(reported) });
export type PauseJson = Shaped<typeof pause>;

/** Why no deployment of any project starts. */
export const hold = v.strictObject({ since: moment, reason: text, by: v.nullable(reported) });
export type HoldJson = Shaped<typeof hold>;

const line = v.strictObject({
  event: v.literal("line"),
  line: text,
  // The place in the log at which the next line begins.
  endByte: count,
  // null: the log does not say.
  printedAt: momentOrNull,
});

/** What a reader of a deployment's events receives; docs/cli.md has each. */
export const event = v.variant("event", [
  v.strictObject({ event: v.literal("deployment"), deployment }),
  line,
]);
export type ControlEvent = Shaped<typeof event>;
export type LineJson = Extract<ControlEvent, { readonly event: "line" }>;

/** What a reader of a service's log receives. Of a line, `container` is such as `web-2`. */
export const serviceLogEvent = v.variant("event", [
  v.strictObject({ event: v.literal("line"), container: text, line: text, printedAt: moment }),
  // It is read from now on, has ended, or cannot be read; `detail` says why.
  v.strictObject({
    event: v.literal("container"),
    container: text,
    state: v.picklist(["begun", "ended", "unreadable"]),
    detail: textOrNull,
  }),
]);
export type ServiceLogEvent = Shaped<typeof serviceLogEvent>;
export const services = v.strictObject({ services: v.array(text) });

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
  missed,
  // Whether it has settings; if not, its pushes are refused and nothing is started.
  isServed: v.boolean(),
});
export type ProjectJson = Shaped<typeof project>;
export const projects = v.strictObject({ projects: v.array(project) });

/** Whether each target took the test message: null, or why not. */
export const notified = v.strictObject({
  project: text,
  results: v.array(v.strictObject({ target: text, fault: textOrNull })),
});

const secret = v.strictObject({
  knownSince: moment,
  lastUsedAt: momentOrNull,
  host: textOrNull,
  deliveryId: textOrNull,
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
  version: text,
  startedAt: moment,
  statePath: text,
  // null: another process receives the pushes.
  address: textOrNull,
  port: countOrNull,
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
  project: text,
  repoPath: text,
  branches: v.array(text),
  // null if nothing runs; `step` is null before the first one.
  running: v.nullable(running),
  catchUp: v.strictObject({ intervalMs: count, lookedAt: momentOrNull, failure: textOrNull }),
  secrets,
  paused: v.nullable(pause),
  // What is wrong with the project's settings, or null.
  fault: textOrNull,
  missed,
});
export type StatusJson = Shaped<typeof status>;

export const wholeStatus = v.strictObject({
  ...server,
  running: v.array(running),
  projects: v.array(project),
});
export type WholeStatusJson = Shaped<typeof wholeStatus>;
export const anyStatus = v.union([status, wholeStatus]);

const named = { name: text, role: v.picklist(roles) };
export const madeLink = v.strictObject({ ...named, link: text, url: textOrNull, lastsMs: count });
export const madeToken = v.strictObject({ ...named, id: count, secret: text });

/** A session or a token: whose it is, and what it may do. */
export const visitor = v.strictObject({ ...named, kind: v.picklist(["session", "token"]), id: count });
export const visitors = v.strictObject({
  visitors: v.array(
    v.strictObject({
      ...visitor.entries,
      createdAt: moment,
      // null: a token was never used.
      seenAt: momentOrNull,
      // Where a browser is: as the page reports it, nothing proves it.
      address: textOrNull,
      agent: textOrNull,
    }),
  ),
});

export const audit = v.strictObject({
  entries: v.array(
    v.strictObject({
      at: moment,
      visitor: text,
      action: text,
      project: textOrNull,
      deployment: countOrNull,
      address: textOrNull,
      status: count,
    }),
  ),
});

/** A refusal of RFC 9457. */
export const problem = v.strictObject({
  type: text,
  title: text,
  status: count,
  detail: text,
  instance: text,
  code: text,
});

export function deploymentJson(recorded: Deployment): DeploymentJson {
  const { problem: found, pusher, requestedBy, cancelledBy, startedAtMs, finishedAtMs } = recorded;
  return {
    ...withInstants(recorded),
    pusher: pusher === null ? null : { name: pusher },
    requestedBy: reportedJson(requestedBy),
    cancelledBy: reportedJson(cancelledBy),
    problem: found && { code: found.code, title: problems[found.code].title, detail: found.detail },
    durationMs: durationBetween(startedAtMs, finishedAtMs),
  };
}

/** Not below 0, if the clock was set back meanwhile. */
function durationBetween(startMs: number | null, endMs: number | null): number | null {
  return startMs === null || endMs === null ? null : Math.max(0, endMs - startMs);
}

export function stepJson({ attempt, name, startedAtMs, endedAtMs }: DeploymentStep): StepJson {
  return {
    attempt,
    name,
    startedAt: instant(startedAtMs),
    durationMs: durationBetween(startedAtMs, endedAtMs),
  };
}

export function lineJson({ text, endByte, printedAtMs }: LogLine): LineJson {
  return { event: "line", line: text, endByte, printedAt: instantOrNull(printedAtMs) };
}

export function pauseJson(found: Pause | null): PauseJson | null {
  return found && waitJson({ sinceMs: found.pausedAtMs, reason: found.reason, by: found.pausedBy });
}

export function holdJson([first]: readonly Hold[]): HoldJson | null {
  return first ? waitJson({ ...first, by: first.heldBy }) : null;
}

function waitJson<Reason extends string | null>(wait: {
  sinceMs: number;
  reason: Reason;
  by: string | null;
}) {
  return { since: instant(wait.sinceMs), reason: wait.reason, by: reportedJson(wait.by) };
}

function reportedJson(name: string | null): ReportedJson | null {
  return name === null ? null : { name, reported: true };
}

type WithInstants<Of> = {
  readonly [Key in keyof Of as Key extends `${infer Name}AtMs`
    ? `${Name}At`
    : Key]: Key extends `${string}AtMs` ? string | Extract<Of[Key], null> : Of[Key];
};

/** A record as JSON has it: each moment `…AtMs`, in milliseconds, becomes `…At`, in ISO 8601. */
export function withInstants<Of extends object>(record: Of): WithInstants<Of> {
  const members = Object.entries(record).map(([name, value]) =>
    name.endsWith("AtMs") ? [name.slice(0, -2), instantOrNull(value as number | null)] : [name, value],
  );
  return Object.fromEntries(members) as WithInstants<Of>;
}

/** A moment in ISO 8601, UTC. */
export function instant(ms: number): string {
  return new Date(ms).toISOString();
}

export function instantOrNull(ms: number | null): string | null {
  return ms === null ? null : instant(ms);
}
