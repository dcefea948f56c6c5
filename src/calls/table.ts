import { RegExpRouter } from "hono/router/reg-exp-router";
import * as v from "valibot";
import type { Call, Stream, Taken } from "./call.ts";
import { deploymentCalls } from "./deployments.ts";
import { projectCalls } from "./projects.ts";
import type { Shaped } from "./shapes.ts";
import { serverCalls } from "./status.ts";
import { visitorCalls } from "./visitors.ts";

/** The one table of calls: what `run` answers over its sockets, the API, its document and the commands follow from it. */
export const calls = { ...projectCalls, ...deploymentCalls, ...serverCalls, ...visitorCalls };

export type CallName = keyof typeof calls;
export type TakenBy<Name extends CallName> = Taken<(typeof calls)[Name]["takes"]>;
export type GivenBy<Name extends CallName> = (typeof calls)[Name]["gives"] extends v.GenericSchema
  ? Shaped<(typeof calls)[Name]["gives"]>
  : Stream;

/** The rows, by name. */
export const rows = Object.entries(calls) as unknown as readonly (readonly [CallName, Call])[];

/** What may stand in a path: nothing that could change it. */
const segments: Readonly<Record<string, string>> = {
  id: "\\d{1,15}",
  project: "_|[a-z0-9][a-z0-9-]{0,38}",
};

const router = new RegExpRouter<CallName>();
for (const [name, { method, path, takes }] of rows) {
  const pattern = path.replaceAll(/:(\w+)/g, (_, member: string) => {
    const latest = member === "id" && v.is(takes.id as v.GenericSchema, "latest") ? "|latest" : "";
    return `:${member}{${segments[member]}${latest}}`;
  });
  router.add(method, pattern, name);
}

/** A call as a request names it. */
export interface FoundCall {
  readonly name: CallName;
  readonly row: Call;
  /** The members in its path, as text. */
  readonly parameters: Readonly<Record<string, string>>;
}

/** Finds the call of a method and a path without its query. It never throws. @returns null if there is none */
export function findCall(method: string, path: string): FoundCall | null {
  const [matches, stash = []] = router.match(method, path) as [
    readonly (readonly [CallName, Readonly<Record<string, number>>])[],
    (readonly string[])?,
  ];
  const [name, places] = matches[0] ?? [];
  if (name === undefined) return null;
  const parameters = Object.entries(places ?? {}).map(([member, place]) => [member, stash[place] ?? ""]);
  return { name, row: calls[name] as unknown as Call, parameters: Object.fromEntries(parameters) };
}

/** Where a member of what a call takes is sent: `project` and `within` never are in a body. */
export function placeOf(
  { method, path }: Pick<Call, "method" | "path">,
  member: string,
): "path" | "query" | "body" {
  if (`${path}/`.includes(`:${member}/`)) return "path";
  return method === "GET" || member === "project" || member === "within" ? "query" : "body";
}

/** The target and the body of a request for a call. A project that is not named is the usual one. */
export function requestFor(
  { method, path, takes }: Pick<Call, "method" | "path" | "takes">,
  asked: Readonly<Record<string, unknown>>,
): { readonly method: string; readonly path: string; readonly body?: string } {
  const query = new URLSearchParams();
  const body: Record<string, unknown> = {};
  let target: string = path;
  for (const member of Object.keys(takes)) {
    const place = placeOf({ method, path }, member);
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
