import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { BlockList } from "node:net";
import { findCall } from "#calls/table";
import type { MachineSettings } from "#config/machine";
import type { Log } from "#log";
import { problemAnswer, type Refusal, sendAnswer } from "#platform/http-answer";
import {
  checkHead,
  clientAddress,
  createHttpServer,
  declaredBytes,
  hardenServer,
  readText,
  serverOptions,
} from "#platform/http-server";
import { findAsset, htmlPage, type PageAnswer, problemPage, seeOther, sendPage } from "./answer.ts";
import { answerProgram, longestBodyBytes, streamed } from "./api.ts";
import { ask, type Refused, type RunClient, type Visit } from "./run-client.ts";
import { findDeployment } from "./screens/deployment.ts";
import { findExamination } from "./screens/doctor.ts";
import { findProject } from "./screens/project.ts";
import { findProjects } from "./screens/projects.ts";
import {
  type Found,
  nothingHere,
  renderScreen,
  type Screen,
  type Visitor,
  type Wanted,
} from "./screens/screen.ts";
import { findSessions, linkScreen, refusalScreen, signInScreen } from "./screens/sign-in.ts";

/** The settings of the page: its address, and the proxies whose X-Forwarded-For is trusted. */
export interface PageSettings extends Pick<MachineSettings, "trustedProxies"> {
  /** Where people reach it. Requests for any other host are refused. */
  readonly pageUrl: URL;
}

const tooLarge: Refusal = {
  code: "payload_too_large",
  detail: "The page takes bodies up to 16 KiB.",
  closing: "refused",
};

/** A browser that wakes up tries each connection that it had, and of those that died in its sleep it learns after seconds. */
const keepAliveTimeout = 5_000;

/** Requests of a visitor at the same time, most of which are open pages that wait for events. */
const mostOfVisitor = 256;

/** The HTTP server of the page. It does not listen yet. */
export function createPage(settings: PageSettings, run: RunClient, log: Log): Server {
  const enter = createPlaces();
  const server = createHttpServer({ ...serverOptions, keepAliveTimeout }, log, async (request, response) => {
    const refusal = checkHead(request) ?? (declaredBytes(request) > longestBodyBytes ? tooLarge : null);
    if (refusal) return sendAnswer(response, problemAnswer(refusal));
    const address = readAddress(request.url);
    const visit = visitOf(request, address, settings);
    const detail = `This session or token has ${mostOfVisitor} requests open. Close some of them.`;
    const answer = enter(visit, response)
      ? await answerVisit(request, address, visit, settings, run)
      : problemPage({ code: "too_many_requests", detail });
    await sendPage(response, answer);
  });
  return hardenServer(server, { limitBytes: longestBodyBytes, tooLarge }, ({ limit, closed, refused }) =>
    log.warn({ event: "connections.crowded", limit, closed, refused }, "The page has many connections"),
  );
}

/** Counts the requests of each visitor, of whom nobody may take all connections of the page. */
function createPlaces() {
  const counts = new Map<string, number>();
  return ({ credential }: Visit, response: ServerResponse): boolean => {
    if (credential === null) return true;
    const count = (counts.get(credential) ?? 0) + 1;
    if (count > mostOfVisitor) return false;
    counts.set(credential, count);
    response.once("close", () => {
      const left = (counts.get(credential) ?? 1) - 1;
      if (left === 0) counts.delete(credential);
      else counts.set(credential, left);
    });
    return true;
  };
}

/** A path that begins with two slashes would be read as another host. */
function readAddress(path = "/"): URL | null {
  return path.startsWith("/") ? URL.parse(`http://page${path}`) : null;
}

const longestAgent = 200;

/** A session counts for what changes nothing, and for the page's own forms, which prove that they are. */
function visitOf(
  { headers, method, socket }: IncomingMessage,
  address: URL | null,
  settings: PageSettings,
): Visit {
  const [, token = null] = /^Bearer (\S{1,100})$/i.exec(headers.authorization ?? "") ?? [];
  const isCall = method !== "GET" && address?.pathname.startsWith("/api/");
  return {
    credential: token ?? (isCall ? null : readSession(headers.cookie, settings)),
    address: clientAddress({ headers, socket } as IncomingMessage, settings.trustedProxies) ?? "",
    agent: (headers["user-agent"] ?? "").slice(0, longestAgent).replaceAll(/[^\x20-\x7e]/g, "?"),
  };
}

async function answerVisit(
  request: IncomingMessage,
  address: URL | null,
  visit: Visit,
  settings: PageSettings,
  run: RunClient,
): Promise<PageAnswer> {
  if (address === null) return problemPage({ code: "malformed_request", detail: "Invalid path." });
  const { pathname: path, searchParams: query } = address;
  if (path === "/health")
    return { kind: "body", status: 200, type: "application/json", body: '{"status":"ok"}' };
  // Another site's name that leads here must not read anything with a visitor's browser (DNS rebinding).
  if (request.headers.host !== settings.pageUrl.host)
    return problemPage({ code: "wrong_host", detail: `The page is at ${settings.pageUrl.origin}.` });
  const scraper = /^(?:\/api)?\/metrics$/.test(path) ? fromProxy(request, visit) : visit;
  if (path.startsWith("/api/"))
    return await answerProgram(request, scraper, run, path.slice("/api".length), query);
  if (request.method === "POST") return await takeForm({ request, run, visit, path, settings });
  if (request.method !== "GET")
    return problemPage({ code: "method_not_allowed", detail: "The page has GET and POST only." });
  if (path === "/metrics") return await streamed(run, scraper, path);
  return findAsset(path) ?? (await showScreen({ run, visit, path, query }));
}

/** An address counts as a right there, so that of a proxy which is not trusted is not the visitor's. */
function fromProxy({ headers, socket }: IncomingMessage, visit: Visit): Visit {
  const isProxy = headers["x-forwarded-for"] !== undefined || headers.forwarded !== undefined;
  const own = clientAddress({ headers: {}, socket } as IncomingMessage, new BlockList());
  return isProxy && visit.address === own ? { ...visit, address: "" } : visit;
}

/** A name or a number of these shapes cannot change the path on the other side. */
const screens: readonly (readonly [RegExp, (wanted: Wanted, named: string) => Found])[] = [
  [/^\/$/, findProjects],
  [/^\/sessions$/, findSessions],
  [/^\/projects\/([a-z0-9][a-z0-9-]{0,38})$/, findProject],
  [/^\/projects\/([a-z0-9][a-z0-9-]{0,38})\/doctor$/, findExamination],
  [/^\/deployments\/(\d{1,15})$/, findDeployment],
];

/** Shows the screen at a path, or that of signing in. */
async function showScreen(asked: Omit<Wanted, "visitor">): Promise<PageAnswer> {
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
interface FormRequest extends Pick<Wanted, "run" | "visit" | "path"> {
  readonly request: IncomingMessage;
  readonly settings: PageSettings;
}

const elsewhere = {
  status: 403,
  detail: "This form was not sent from this page. Load the page again, and try again.",
};

/** Does what a form asks for, if it comes from this page, and shows at once what it has started. */
async function takeForm(form: FormRequest): Promise<PageAnswer> {
  const { request, run, visit, path, settings } = form;
  if (!isFromHere(request, settings)) return await showRefusal(null, elsewhere);
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
function isFromHere(
  { headers: { origin, "sec-fetch-site": site } }: IncomingMessage,
  { pageUrl }: PageSettings,
) {
  if (origin === undefined && site === undefined) return false;
  return (site ?? "same-origin") === "same-origin" && (origin ?? pageUrl.origin) === pageUrl.origin;
}

async function readFields(request: IncomingMessage): Promise<URLSearchParams> {
  return new URLSearchParams((await readText(request, longestBodyBytes)) ?? "");
}

/** The session is always a new one; what the browser had before is forgotten. */
async function signIn({ run, visit, settings }: FormRequest, fields: URLSearchParams): Promise<PageAnswer> {
  const answer = await ask(run, { ...visit, credential: null }, "signIn", { link: fields.get("link") ?? "" });
  if (answer.kind === "refused") return await show(signInScreen(answer.detail), answer.status);
  return seeOther("/", { "set-cookie": sessionCookie(answer.value.session, settings) });
}

async function signOut({ run, visit, settings }: FormRequest, fields: URLSearchParams, visitor: Visitor) {
  const id = Number(fields.get("id") ?? visitor.sessionId);
  const answer = await ask(run, visit, "signOut", { id });
  if (answer.kind === "refused") return await showRefusal(visitor, answer);
  if (id !== visitor.sessionId) return seeOther("/sessions");
  return seeOther("/", { "set-cookie": sessionCookie(null, settings) });
}

/** A browser stays signed in as long as `run` says; this only keeps the cookie until then. */
const keptSeconds = 30 * 24 * 3_600;

/** With `__Host-`, no other host name can plant one. It needs TLS, which localhost has not. */
function cookieName({ pageUrl }: PageSettings): string {
  return pageUrl.protocol === "http:" ? "hotpush" : "__Host-hotpush";
}

/** @returns the session of a browser; null: none */
function readSession(header: string | undefined, settings: PageSettings): string | null {
  const name = cookieName(settings);
  const pairs = (header ?? "").split(";").map((pair) => pair.trim());
  const session = pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1);
  return session && /^[\w-]{1,100}$/.test(session) ? session : null;
}

/** @param session null: the browser forgets it */
function sessionCookie(session: string | null, settings: PageSettings): string {
  const secure = settings.pageUrl.protocol === "http:" ? "" : "; Secure";
  const age = session === null ? 0 : keptSeconds;
  return `${cookieName(settings)}=${session ?? ""}; Path=/; HttpOnly; SameSite=Lax${secure}; Max-Age=${age}`;
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
