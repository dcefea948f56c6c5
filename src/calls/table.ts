import * as v from "valibot";
import { projectNamePattern } from "#config/server";
import type { FrontAnswers, Would } from "#deployments/push";
import { type HttpProblemCode, ProblemError } from "#problems";
import * as shapes from "./shapes.ts";
import { ofDeployment, ofProject, ofProjectOrAll, type Shaped, takes } from "./shapes.ts";

/**
 * What somebody must be to make a call. A viewer looks and an operator acts: both are visitors of the page, known by a session
 * or a token. `scraper` is a viewer, or an address that may read the metrics. `front` is the process that faces the internet,
 * without a credential of a visitor. Over the operator's socket everything is allowed; what needs `server` is allowed there only.
 */
type Right = "viewer" | "operator" | "scraper" | "front" | "server";

const viewer = rowsFor("viewer");
const operator = rowsFor("operator");
const scraper = rowsFor("scraper");
const front = rowsFor("front");
const server = rowsFor("server");

const anything = <Value>() => v.custom<Value>(() => true);
const events = "text/event-stream";
const plain = "text/plain; charset=utf-8";

/** A call that goes on, unless it is not to follow. */
const going = { follow: v.optional(v.picklist(["true", "false"]), "true") };

/**
 * The one table of calls: what `run` answers over its sockets, the API, its document, the commands and the forms of the page
 * follow from it. What `run` does for each is in handlers.ts, by the same name. Each takes what is named in its path, and more.
 */
export const calls = {
  projects: viewer("GET /projects", shapes.projects, "All projects, and what is live of each"),
  status: viewer("GET /status", shapes.anyStatus, "What runs and waits, of a project or all", ofProjectOrAll),
  history: viewer("GET /deployments", shapes.history, "Deployments of a project or all, newest first", {
    ...ofProjectOrAll,
    limit: takes.limit,
    before: takes.before,
    state: v.optional(shapes.state),
  }),
  deployment: viewer("GET /deployments/:id", shapes.oneDeployment, "A deployment and its steps"),
  log: viewer("GET /deployments/:id/log", plain, "What its script printed; `timed` as it is stored", {
    format: v.optional(v.picklist(["text", "timed"]), "text"),
  }),
  events: viewer("GET /deployments/:id/events", events, "What happened since a byte of its log, and on", {
    from: v.optional(takes.place, 0),
    ...going,
  }),
  receipt: viewer("GET /deployments/:id/receipt", shapes.receipt, "Its signed receipt (docs/receipts.md)"),
  receiptKey: viewer("GET /receipt-key", shapes.publicKey, "The public key of this server's receipts"),
  deploy: operator("POST /projects/:project/deployments", shapes.requested, "Deploy the head of a branch", {
    ref: v.optional(takes.text),
  }),
  rollback: operator("POST /projects/:project/rollback", shapes.requested, "Go back to a good version", {
    version: v.optional(takes.text),
  }),
  cancel: operator("POST /deployments/:id/cancel", shapes.requested, "Cancel it; `latest` runs, else waits"),
  pause: operator("POST /projects/:project/pause", shapes.paused, "Hold the queue of a project", {
    reason: takes.reason,
  }),
  resume: operator("POST /projects/:project/resume", shapes.paused, "Let the queue of a project go on"),
  services: operator("GET /projects/:project/services", shapes.services, "The services that have containers"),
  serviceLog: operator(
    "GET /projects/:project/services/:service/log",
    events,
    "What its containers printed, then print",
    {
      service: takes.service,
      tail: v.optional(takes.lines, 100),
      since: v.optional(takes.moment),
      ...going,
    },
  ),
  metrics: scraper("GET /metrics", "text/plain; version=0.0.4; charset=utf-8", "The metrics, for Prometheus"),
  visitor: viewer("GET /visitor", shapes.visitor, "Who asks, and what they may do"),
  signOut: viewer("POST /sign-out", shapes.visitor, "End the session that asks"),

  signIn: front("POST /sessions", v.strictObject({ session: v.string() }), "Use up a link, for a session", {
    link: takes.text,
  }),
  offerPushes: front("POST /front/pushes", anything<FrontAnswers>(), "Record pushes in the spool", {
    ids: takes.offered(v.pipe(v.string(), v.regex(/^[0-9a-f]{32}$/))),
  }),
  dryRun: front("POST /front/dry-run", anything<{ readonly would: Would | null }>(), "Try a push", {
    project: takes.project,
    push: v.looseObject({}),
  }),
  badge: front("POST /front/badge", shapes.requestCounts, "The counts of a badge that anybody may see", {
    project: takes.project,
  }),
  noteUses: front("POST /front/uses", v.strictObject({}), "Note which secrets have signed deliveries", {
    uses: takes.offered(v.union([shapes.secretUse, shapes.missedDelivery])),
  }),

  testNotifications: server("POST /projects/:project/notify/test", shapes.notified, "Send test messages"),
  health: server("GET /health", v.strictObject({ status: v.literal("ok") }), "Whether the service works"),
  hold: server(
    "POST /hold",
    "application/x-ndjson",
    "Let no deployment start for as long as the connection lasts",
    {
      reason: takes.reason,
    },
  ),
  makeLink: server("POST /links", shapes.madeLink, "Make a link that signs somebody in once", takes.named),
  makeToken: server("POST /tokens", shapes.madeToken, "Make a token; it is shown once", takes.named),
  visitors: server("GET /visitors", shapes.visitors, "The sessions and the tokens, without their secrets"),
  endVisitor: server("POST /visitors/:id/end", shapes.visitor, "End a session or a token at once"),
  audit: server("GET /audit", shapes.audit, "What was done over the page and its API", {
    limit: takes.limit,
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
  /** The shape of its JSON, or the media type of its text. */
  readonly gives: Gives;
  readonly does: string;
  readonly takes: Of;
}

type TakenInPath<On> = On extends `${string} /projects/:project${string}`
  ? typeof ofProject
  : On extends `${string} /deployments/:id${string}`
    ? typeof ofDeployment
    : On extends `${string}/:id${string}`
      ? { readonly id: typeof takes.number }
      : Record<never, never>;

function rowsFor(right: Right) {
  return <
    const On extends `${"GET" | "POST"} /${string}`,
    Gives extends v.GenericSchema | string,
    More extends Takes = Record<never, never>,
  >(
    on: On,
    gives: Gives,
    does: string,
    more?: More,
  ): Call<TakenInPath<On> & More, Gives> => {
    const [method, path = ""] = on.split(" ");
    const id = path.startsWith("/deployments/") ? ofDeployment : { id: takes.number };
    const inPath = path.includes("/:project") ? ofProject : path.includes("/:id") ? id : {};
    const own = { ...inPath, ...more } as TakenInPath<On> & More;
    return { right, method: method === "GET" ? "GET" : "POST", path, gives, does, takes: own };
  };
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

/** The status of what it answers: 202 if it begins something that goes on. */
export function statusOf({ gives }: Pick<Call, "gives">): 200 | 202 {
  return gives === shapes.requested ? 202 : 200;
}

/** What may stand in a path: nothing that could change it. */
const segments: Readonly<Record<string, string>> = {
  id: "\\d{1,15}|latest",
  project: `_|${projectNamePattern}`,
  service: "[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,99}",
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
): { readonly method: "GET" | "POST"; readonly path: string; readonly body?: string } {
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

/**
 * Reads what a call takes from its path, query and body.
 *
 * @throws ProblemError `invalid_json` or `input_invalid`, with the member that is wrong
 */
export function readAsked(
  { row, parameters }: FoundCall,
  query: URLSearchParams,
  body: string,
): Readonly<Record<string, unknown>> {
  const sent = Object.entries(body === "" ? {} : parseObject(body));
  const members: (readonly [string, unknown])[] = [...Object.entries(parameters), ...query, ...sent];
  const given = Object.fromEntries(members);
  const odd = members.find(([member]) => !Object.hasOwn(row.takes, member));
  if (odd) refuse("input_invalid", `This call takes no \`${odd[0].slice(0, 40)}\`.`);
  if (Object.keys(given).length < members.length) refuse("input_invalid", "Give each member once.");
  const read = v.safeParse(v.strictObject(row.takes), given, { abortEarly: true });
  if (read.success) return read.output;
  const [issue] = read.issues;
  const member = issue.path?.map(({ key }) => String(key)).join(".") ?? "";
  return refuse("input_invalid", `The member ${member} is wrong: ${issue.message.replace(/\.$/, "")}.`);
}

function parseObject(text: string): object {
  try {
    const value = JSON.parse(text) as unknown;
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Answered like JSON that is no object.
  }
  return refuse("invalid_json", "The body is not a JSON object.");
}

/** Ends a call that does not do what was asked: what is refused, why, and the next step. @throws ProblemError */
export function refuse(code: HttpProblemCode, detail: string): never {
  throw new ProblemError({ code, detail });
}
