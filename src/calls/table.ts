import * as v from "valibot";
import type { FrontAnswers, Would } from "#deployments/push";
import * as shapes from "./shapes.ts";
import { ofDeployment, ofProject, ofProjectOrAll, type Shaped, takes } from "./shapes.ts";

/**
 * Who may make a call. A viewer looks and an operator acts: both are visitors of the page, known by a session or a token.
 * `scraper` is a viewer, or an address that may read the metrics. `front` is the process that faces the internet, without a
 * credential of a visitor. Over the operator's socket everything is allowed; what needs `server` is allowed there only.
 */
export type Right = "viewer" | "operator" | "scraper" | "front" | "server";

/**
 * The one table of calls: what `run` answers over its sockets, the API, its document, the commands and the forms of the page
 * follow from it. What `run` does for each is in handlers.ts, by the same name.
 */
export const calls = {
  projects: call("viewer", "GET /projects", "All projects, and what is live of each", {
    takes: {},
    gives: shapes.projects,
  }),
  doctor: call("viewer", "GET /projects/:project/doctor", "What the doctor found; ask again if `isRunning`", {
    takes: ofProject,
    gives: shapes.examination,
  }),
  status: call(
    "viewer",
    "GET /status",
    "What runs and waits of a project or of all, and how the service is",
    {
      takes: ofProjectOrAll,
      gives: v.union([shapes.status, shapes.wholeStatus]),
    },
  ),
  history: call("viewer", "GET /deployments", "The deployments of a project or of all, the newest first", {
    takes: { ...ofProjectOrAll, limit: takes.limit, before: takes.before, state: v.optional(shapes.state) },
    gives: shapes.history,
  }),
  deployment: call("viewer", "GET /deployments/:id", "A deployment, its steps, and how long its log is", {
    takes: ofDeployment,
    gives: shapes.oneDeployment,
  }),
  log: call("viewer", "GET /deployments/:id/log", "What its script printed; `timed` as it is stored", {
    takes: { ...ofDeployment, format: v.optional(v.picklist(["text", "timed"]), "text") },
    gives: "text/plain; charset=utf-8",
  }),
  logPage: call("viewer", "GET /deployments/:id/log/page", "The page of its log that ends at the byte `to`", {
    takes: { ...ofDeployment, to: v.optional(takes.place) },
    gives: shapes.logPage,
  }),
  events: call(
    "viewer",
    "GET /deployments/:id/events",
    "What happened since a byte of its log, then happens",
    {
      takes: { ...ofDeployment, from: v.optional(takes.place, 0), follow: takes.follow },
      gives: "application/x-ndjson",
    },
  ),
  deploy: call("operator", "POST /projects/:project/deployments", "Deploy the head of a branch at its host", {
    takes: { ...ofProject, ref: v.optional(takes.text) },
    gives: shapes.requested,
    status: 202,
  }),
  rollback: call("operator", "POST /projects/:project/rollback", "Go back to a good version, else the last", {
    takes: { ...ofProject, version: v.optional(takes.text) },
    gives: shapes.requested,
    status: 202,
  }),
  cancel: call(
    "operator",
    "POST /deployments/:id/cancel",
    "Cancel one, or what runs (`latest`), else waits",
    {
      takes: ofDeployment,
      gives: shapes.requested,
      status: 202,
    },
  ),
  pause: call("operator", "POST /projects/:project/pause", "Hold the queue of a project", {
    takes: { ...ofProject, reason: takes.reason },
    gives: shapes.paused,
  }),
  resume: call("operator", "POST /projects/:project/resume", "Let the queue of a project go on", {
    takes: ofProject,
    gives: shapes.paused,
  }),
  metrics: call("scraper", "GET /metrics", "The metrics, for Prometheus", {
    takes: {},
    gives: "text/plain; version=0.0.4; charset=utf-8",
  }),
  visitor: call("viewer", "GET /visitor", "Who asks, and what they may do", {
    takes: {},
    gives: shapes.visitor,
  }),
  sessions: call("viewer", "GET /sessions", "Your sessions; over the operator's socket, those of everybody", {
    takes: {},
    gives: shapes.sessions,
  }),
  signOut: call("viewer", "POST /sign-out", "End a session of yours: this one, or the one with `id`", {
    takes: { id: v.optional(takes.number) },
    gives: shapes.ended,
  }),

  signIn: call("front", "POST /sessions", "Use up a link of `hotpush open`, for a session", {
    takes: { link: takes.text },
    gives: v.strictObject({ session: v.string() }),
  }),
  offerPushes: call("front", "POST /front/pushes", "Record pushes that are in the spool", {
    takes: { ids: takes.offered(v.pipe(v.string(), v.regex(/^[0-9a-f]{32}$/))) },
    gives: v.custom<FrontAnswers>(() => true),
  }),
  dryRun: call("front", "POST /front/dry-run", "What would happen to a push", {
    takes: { project: takes.project, push: v.looseObject({}) },
    gives: v.custom<{ readonly would: Would | null }>(() => true),
  }),
  noteUses: call("front", "POST /front/uses", "Note which secrets have signed deliveries", {
    takes: { uses: takes.offered(shapes.secretUse) },
    gives: v.strictObject({}),
  }),

  testNotifications: call(
    "server",
    "POST /projects/:project/notify/test",
    "Send a test message to each target",
    {
      takes: ofProject,
      gives: shapes.notified,
    },
  ),
  health: call("server", "GET /health", "Whether the service does its work, as the webhook's port says it", {
    takes: {},
    gives: v.strictObject({ status: v.literal("ok") }),
  }),
  hold: call("server", "POST /hold", "Let no deployment start for as long as the connection lasts", {
    takes: { reason: takes.reason },
    gives: "application/x-ndjson",
  }),
  makeLink: call("server", "POST /links", "Make a link that signs somebody in once, within two minutes", {
    takes: { name: takes.name, role: v.picklist(shapes.roles) },
    gives: shapes.madeLink,
  }),
  endSession: call("server", "POST /sessions/:id/end", "End a session at once", {
    takes: { id: takes.number },
    gives: shapes.ended,
  }),
  makeToken: call("server", "POST /tokens", "Make a token for a program; it is shown once", {
    takes: { name: takes.name, scope: v.picklist(shapes.scopes, "Give the token a scope: read or deploy.") },
    gives: shapes.madeToken,
  }),
  tokens: call("server", "GET /tokens", "The tokens, without their secrets", {
    takes: {},
    gives: v.strictObject({ tokens: v.array(shapes.token) }),
  }),
  endToken: call("server", "POST /tokens/:id/end", "End a token at once", {
    takes: { id: takes.number },
    gives: shapes.ended,
  }),
  audit: call("server", "GET /audit", "What was done over the page and its API", {
    takes: { limit: takes.limit },
    gives: shapes.audit,
  }),
};

/** The members of what a call takes: those named in its path, then the query of a GET and the body of a POST. */
type Takes = Readonly<Record<string, v.GenericSchema>>;

/** One row of the table. */
export interface Call<
  Of extends Takes = Takes,
  Gives extends v.GenericSchema | string = v.GenericSchema | string,
> {
  readonly right: Right;
  readonly method: "GET" | "POST";
  /** With `:name` for each member of `takes` that is in it. */
  readonly path: string;
  readonly does: string;
  readonly takes: Of;
  /** The shape of its JSON, or the media type of its text. */
  readonly gives: Gives;
  /** 202: it begins something that goes on. */
  readonly status?: 202;
}

function call<const Of extends Takes, const Gives extends v.GenericSchema | string>(
  right: Right,
  on: `${"GET" | "POST"} /${string}`,
  does: string,
  rest: Pick<Call<Of, Gives>, "takes" | "gives" | "status">,
): Call<Of, Gives> {
  const [method, path = ""] = on.split(" ");
  return { right, method: method === "GET" ? "GET" : "POST", path, does, ...rest };
}

export type CallName = keyof typeof calls;
export type TakenBy<Name extends CallName> = TakenIn<(typeof calls)[Name]["takes"]>;
type TakenIn<Of extends Takes> = Shaped<v.StrictObjectSchema<Of, undefined>>;
/** What its JSON is; never, if it answers with text. */
export type GivenBy<Name extends CallName> = (typeof calls)[Name]["gives"] extends v.GenericSchema
  ? Shaped<(typeof calls)[Name]["gives"]>
  : never;

/** The rows, by name. */
export const rows = Object.entries(calls) as unknown as readonly (readonly [CallName, Call])[];

/** Whether visitors may make it, over the page or its API. */
export function isForVisitors({ right }: Pick<Call, "right">): boolean {
  return right !== "server" && right !== "front";
}

/** What may stand in a path: nothing that could change it. */
const segments: Readonly<Record<string, string>> = {
  id: "\\d{1,15}|latest",
  project: "_|[a-z0-9][a-z0-9-]{0,38}",
};

const patterns = rows.map(([name, row]) => {
  const pattern = row.path.replaceAll(/:(\w+)/g, (_, member: string) => `(?<${member}>${segments[member]})`);
  return { name, row, pattern: new RegExp(`^${pattern}$`) };
});

/** A call as a request names it. */
export interface FoundCall {
  readonly name: CallName;
  readonly row: Call;
  /** The members in its path, as text. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** Finds the call of a method and a path without its query. It never throws. @returns null if there is none */
export function findCall(method: string, path: string): FoundCall | null {
  for (const { name, row, pattern } of patterns) {
    const found = row.method === method ? pattern.exec(path) : null;
    if (found !== null) return { name, row, parameters: { ...found.groups } };
  }
  return null;
}

/** Where a member of what a call takes is sent: `project` and `within` are in no visitor's body. */
export function placeOf(
  { right, method, path }: Pick<Call, "right" | "method" | "path">,
  member: string,
): "path" | "query" | "body" {
  if (`${path}/`.includes(`:${member}/`)) return "path";
  const isWhose = right !== "front" && (member === "project" || member === "within");
  return method === "GET" || isWhose ? "query" : "body";
}

/** The target and the body of a request for a call. A project that is not named is the usual one. */
export function requestFor(
  row: Pick<Call, "right" | "method" | "path" | "takes">,
  asked: Readonly<Record<string, unknown>>,
): { readonly method: string; readonly path: string; readonly body?: string } {
  const { method, path } = row;
  const query = new URLSearchParams();
  const body: Record<string, unknown> = {};
  let target: string = path;
  for (const member of Object.keys(row.takes)) {
    const place = placeOf(row, member);
    const usual = place === "path" && member === "project" ? "_" : undefined;
    const value = asked[member] === undefined ? usual : asked[member];
    if (value === undefined) continue;
    if (place === "path") target = target.replace(`:${member}`, () => encodeURIComponent(String(value)));
    else if (place === "query") query.set(member, String(value));
    else body[member] = value;
  }
  const whole = query.size === 0 ? target : `${target}?${query}`;
  return { method, path: whole, ...(method === "POST" && { body: JSON.stringify(body) }) };
}

/** The path of a call, which is also that of its form on the page. */
export function callPath<Name extends CallName>(name: Name, asked: Partial<TakenBy<Name>>): string {
  return requestFor(calls[name], asked).path;
}

/** Why a request is refused, as the codes of problems name it. */
export interface Unfit {
  readonly code: "invalid_json" | "input_invalid";
  readonly detail: string;
}

/** Reads what a call takes from its path, query and body. */
export function readAsked(
  { row, parameters }: FoundCall,
  query: URLSearchParams,
  body: string,
): { readonly asked: Readonly<Record<string, unknown>> } | Unfit {
  const sent = body === "" ? {} : parseObject(body);
  if (sent === null) return { code: "invalid_json", detail: "The body is not a JSON object." };
  const given: Record<string, unknown> = { ...parameters };
  for (const [place, members] of [
    ["query", [...query]],
    ["body", Object.entries(sent)],
  ] as const) {
    for (const [member, value] of members) {
      const isKnown = Object.hasOwn(row.takes, member) && placeOf(row, member) === place;
      if (!isKnown || Object.hasOwn(given, member))
        return {
          code: "input_invalid",
          detail: `This call takes no \`${member.slice(0, 40)}\` in its ${place}, or only one.`,
        };
      given[member] = value;
    }
  }
  const read = v.safeParse(v.strictObject(row.takes), given, { abortEarly: true });
  if (read.success) return { asked: read.output };
  const [issue] = read.issues;
  const member = issue.path?.map(({ key }) => String(key)).join(".") ?? "";
  return {
    code: "input_invalid",
    detail: `The member ${member} is wrong: ${issue.message.replace(/\.$/, "")}.`,
  };
}

function parseObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}
