import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { findCall } from "#calls/table";
import { readText } from "#platform/http-server";
import { htmlPage, longestBodyBytes, type PageAnswer, seeOther } from "./answer.ts";
import type { Refused, RunClient, Visit } from "./run-client.ts";
import { findDeployment } from "./screens/deployment.ts";
import { findExamination } from "./screens/doctor.ts";
import { findProject } from "./screens/project.ts";
import { findProjects } from "./screens/projects.ts";
import {
  ask,
  type Found,
  nothingHere,
  renderScreen,
  type Screen,
  type Visitor,
  type Wanted,
} from "./screens/screen.ts";
import { findSessions, linkScreen, refusalScreen, signInScreen } from "./screens/sign-in.ts";

/** A name or a number of these shapes cannot change the path on the other side. */
const screens: readonly (readonly [RegExp, (wanted: Wanted, named: string) => Found])[] = [
  [/^\/$/, findProjects],
  [/^\/sessions$/, findSessions],
  [/^\/projects\/([a-z0-9][a-z0-9-]{0,38})$/, findProject],
  [/^\/projects\/([a-z0-9][a-z0-9-]{0,38})\/doctor$/, findExamination],
  [/^\/deployments\/(\d{1,15})$/, findDeployment],
];

/** Shows the screen at a path, or that of signing in. */
export async function showScreen(asked: Omit<Wanted, "visitor">): Promise<PageAnswer> {
  const { run, visit, path, query } = asked;
  if (path === "/sign-in") return await show(linkScreen(query.get("link") ?? ""));
  const visitor = await findVisitor(run, visit);
  if ("kind" in visitor) return await showRefusal(null, visitor);
  const [found, named = ""] = screens.flatMap(([pattern, find]) => {
    const match = pattern.exec(path);
    return match ? [find, match[1]] : [];
  }) as [((wanted: Wanted, named: string) => Found)?, string?];
  const screen = found ? await found({ ...asked, visitor }, named) : nothingHere;
  return "kind" in screen ? await showRefusal(visitor, screen) : await show(screen);
}

/** Asks `run` who a browser is. */
async function findVisitor(run: RunClient, visit: Visit): Promise<Visitor | Refused> {
  if (visit.credential === null) return { ...nothingHere, status: 401, code: "not_signed_in" };
  const answer = await ask(run, visit, "visitor", {});
  if (answer.kind === "refused") return answer;
  const { name, role, id } = answer.value;
  return { name, isOperator: role === "operator", token: formToken(visit.credential), sessionId: id };
}

async function show(screen: Screen, status = 200): Promise<PageAnswer> {
  return htmlPage(await renderScreen(screen), status);
}

function showRefusal(
  visitor: Visitor | null,
  refused: Pick<Refused, "status" | "detail">,
): Promise<PageAnswer> {
  return show(refused.status === 401 ? signInScreen(null) : refusalScreen(visitor, refused), refused.status);
}

/** A form that a browser sent. */
export interface FormRequest extends Pick<Wanted, "run" | "visit" | "path"> {
  readonly request: IncomingMessage;
  /** That of the page. */
  readonly origin: string;
  readonly cookieName: string;
}

const elsewhere = {
  status: 403,
  detail: "This form was not sent from this page. Load the page again, and try again.",
};

/** Does what a form asks for, if it comes from this page, and shows at once what it has started. */
export async function takeForm(form: FormRequest): Promise<PageAnswer> {
  const { request, run, visit, path } = form;
  if (!isFromHere(form)) return await showRefusal(null, elsewhere);
  if (path === "/sign-in") return await signIn(form, await readFields(request));
  const visitor = await findVisitor(run, visit);
  if ("kind" in visitor) return await showRefusal(null, visitor);
  // Only now: the body of somebody whom `run` does not know could take long to come.
  const fields = await readFields(request);
  if (!isFormToken(fields.get("token") ?? "", visit.credential ?? ""))
    return await showRefusal(visitor, elsewhere);
  if (path === "/sign-out") return await signOut(form, fields, visitor);
  // A form is at the path of its call.
  const found = findCall("POST", path);
  if (found?.row.right !== "operator")
    return await showRefusal(visitor, { status: 404, detail: "There is no such form." });
  const body = Object.fromEntries([...fields].filter(([name, value]) => name !== "token" && value !== ""));
  const answer = await run.call(visit, "POST", path, JSON.stringify(body));
  if (answer.kind === "refused") return await showRefusal(visitor, answer);
  const { deployment } = answer.value as { readonly deployment?: { readonly id: number } };
  return seeOther(deployment ? `/deployments/${deployment.id}` : `/projects/${found.parameters.project}`);
}

/** A browser says where a form comes from, and no page can make it lie. Without a word from it, it is refused. */
function isFromHere({ request, origin: own }: FormRequest): boolean {
  const { origin, "sec-fetch-site": site } = request.headers;
  if (origin === undefined && site === undefined) return false;
  return (site ?? "same-origin") === "same-origin" && (origin ?? own) === own;
}

async function readFields(request: IncomingMessage): Promise<URLSearchParams> {
  return new URLSearchParams((await readText(request, longestBodyBytes)) ?? "");
}

/** The session is always a new one; what the browser had before is forgotten. */
async function signIn(form: FormRequest, fields: URLSearchParams): Promise<PageAnswer> {
  const { run, visit } = form;
  const answer = await ask(run, { ...visit, credential: null }, "signIn", { link: fields.get("link") ?? "" });
  if (answer.kind === "refused") return await show(signInScreen(answer.detail), answer.status);
  return seeOther("/", { "set-cookie": sessionCookie(answer.value.session, form) });
}

async function signOut(form: FormRequest, fields: URLSearchParams, visitor: Visitor) {
  const { run, visit } = form;
  const id = Number(fields.get("id") ?? visitor.sessionId);
  const answer = await ask(run, visit, "signOut", { id });
  if (answer.kind === "refused") return await showRefusal(visitor, answer);
  if (id !== visitor.sessionId) return seeOther("/sessions");
  return seeOther("/", { "set-cookie": sessionCookie(null, form) });
}

/** A browser stays signed in as long as `run` says; this only keeps the cookie until then. */
const keptSeconds = 30 * 24 * 3_600;

/** @param session null: the browser forgets it */
function sessionCookie(session: string | null, { cookieName, origin }: FormRequest): string {
  const secure = origin.startsWith("http:") ? "" : "; Secure";
  const age = session === null ? 0 : keptSeconds;
  return `${cookieName}=${session ?? ""}; Path=/; HttpOnly; SameSite=Lax${secure}; Max-Age=${age}`;
}

const nonceBytes = 16;

/** What a form carries, so that it can only have come from a page that this session was shown. Each is different. */
function formToken(session: string): string {
  const nonce = randomBytes(nonceBytes).toString("base64url");
  return `${nonce}.${proofOf(nonce, session)}`;
}

function isFormToken(token: string, session: string): boolean {
  const [nonce = "", proof = ""] = token.split(".");
  const [given, expected] = [Buffer.from(proof), Buffer.from(proofOf(nonce, session))];
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function proofOf(nonce: string, session: string): string {
  return createHmac("sha256", session).update(`form ${nonce}`).digest("base64url");
}
