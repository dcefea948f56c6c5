import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { BlockList } from "node:net";
import { projectNamePattern } from "#config/server";
import type { ServiceSettings } from "#config/service";
import type { Log } from "#log";
import {
  checkHead,
  clientAddress,
  createPublicServer,
  declaredBytes,
  problemAnswer,
  type Refusal,
  sendAnswer,
} from "#platform/http-server";
import { type HttpProblemCode, type Problem, ProblemError } from "#problems";
import { findAsset, longestBodyBytes, type PageAnswer, problemPage } from "./answer.ts";
import type { RunClient, Visit } from "./run-client.ts";

/** The settings of the page: its address, and the proxies whose X-Forwarded-For is trusted. */
export interface PageSettings extends Pick<ServiceSettings, "trustedProxies" | "isBadgePublic"> {
  /** Where people reach it. Requests for any other host are refused. */
  readonly pageUrl: URL;
}

const tooLarge: Refusal = {
  code: "payload_too_large",
  detail: "The page takes bodies up to 16 KiB.",
  closing: "refused",
};

const badgePath = new RegExp(`^/badge/(${projectNamePattern})\\.svg$`);

/** A browser that wakes up tries each connection that it had, and of those that died in its sleep it learns after seconds. */
const keepAliveTimeout = 5_000;

/** Requests of a visitor at the same time, most of which are open pages that wait for events: a part of what `run` accepts. */
export const mostOfVisitor = 256;

/** The HTTP server of the page. It does not listen yet. */
export function createPage(settings: PageSettings, run: RunClient, log: Log): Server {
  const enter = createPlaces();
  const takeTurn = createVisitorTurns();
  return createPublicServer("page", { keepAliveTimeout }, log, async (request, response) => {
    const refusal = checkHead(request) ?? (declaredBytes(request) > longestBodyBytes ? tooLarge : null);
    if (refusal) return sendAnswer(response, problemAnswer(refusal));
    const address = readAddress(request.url);
    const visit = visitOf(request, address, settings);
    const detail = `This session or token has ${mostOfVisitor} requests open. Close some of them.`;
    if (!enter(visit, response))
      return await sendPage(response, problemPage({ code: "too_many_requests", detail }));
    await takeTurn(visit);
    if (response.destroyed) return;
    await sendPage(response, await answerVisit(request, address, visit, settings, run).catch(problemOf));
  });
}

/** What `run` has refused. */
function problemOf(error: unknown): PageAnswer {
  if (error instanceof ProblemError) return problemPage(error.problem as Problem<HttpProblemCode>);
  throw error;
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

/**
 * One request begins in each turn of the event loop, so that a flood of the page keeps no push waiting. Addresses take turns, so that
 * it keeps no visitor at another address waiting either. The visitors at one address take turns by their credentials, which
 * nobody has verified yet: anyone can send a thousand.
 */
export function createVisitorTurns(): (visit: Pick<Visit, "address" | "credential">) => Promise<void> {
  const waiting = new Map<string, Map<string | null, (() => void)[]>>();

  function beginNext(): void {
    const [first] = waiting;
    if (first === undefined) return;
    const [address, visitors] = first;
    const [[credential, begins] = [null, []]] = visitors;
    begins.shift()?.();
    // Behind all others.
    visitors.delete(credential);
    if (begins.length > 0) visitors.set(credential, begins);
    waiting.delete(address);
    if (visitors.size > 0) waiting.set(address, visitors);
    if (waiting.size > 0) setImmediate(beginNext);
  }

  return ({ address, credential }) =>
    new Promise((resolve) => {
      if (waiting.size === 0) setImmediate(beginNext);
      const visitors = waiting.get(address) ?? new Map<string | null, (() => void)[]>();
      waiting.set(address, visitors);
      visitors.set(credential, visitors.get(credential) ?? []);
      visitors.get(credential)?.push(resolve);
    });
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
    hasLeft: () => socket.destroyed,
  };
}

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
  const [{ answerProgram, streamed }, { showScreen, takeForm }, { showBadge }] = await loadAnswers();
  if (path.startsWith("/api/"))
    return await answerProgram(request, scraper, run, path.slice("/api".length), query);
  if (request.method === "POST")
    return await takeForm({
      request,
      run,
      visit,
      path,
      origin: settings.pageUrl.origin,
      cookieName: cookieName(settings),
    });
  if (request.method !== "GET")
    return problemPage({ code: "method_not_allowed", detail: "The page has GET and POST only." });
  if (path === "/metrics") return await streamed(run, scraper, path);
  const [, badge] = badgePath.exec(path) ?? [];
  if (badge !== undefined && settings.isBadgePublic) return await showBadge(run, visit, badge);
  return findAsset(path) ?? (await showScreen({ run, visit, path, query }));
}

/** An address counts as a right there, so that of a proxy which is not trusted is not the visitor's. */
function fromProxy({ headers, socket }: IncomingMessage, visit: Visit): Visit {
  const isProxy = headers["x-forwarded-for"] !== undefined || headers.forwarded !== undefined;
  const own = clientAddress({ headers: {}, socket } as IncomingMessage, new BlockList());
  return isProxy && visit.address === own ? { ...visit, address: "" } : visit;
}

/** Only what comes from this address runs or is shown; a log line or a commit's subject is text, whatever it says. */
const contentPolicy = [
  "default-src 'none'",
  ...["script-src", "style-src", "connect-src", "img-src", "form-action"].map((what) => `${what} 'self'`),
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join("; ");

/** For every answer. Nothing of it may be kept, framed, or sniffed as something else. */
const commonHeaders = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  // With no-referrer a browser would send a form with the origin "null".
  "referrer-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "content-security-policy": contentPolicy,
} as const;

/** Resolves when the answer was handed to the connection, or its stream is over. */
async function sendPage(response: ServerResponse, answer: PageAnswer): Promise<void> {
  if (answer.kind === "stream") {
    // A stream of events may be silent for long.
    response.socket?.setTimeout(0);
    // nginx in front of Caddy would hold the lines of a log back.
    response.writeHead(200, { ...commonHeaders, "x-accel-buffering": "no", "content-type": answer.type });
    response.flushHeaders();
    await answer.write(response);
    return;
  }
  const { status, type, body, headers } = answer;
  response.writeHead(status, {
    ...commonHeaders,
    ...(status === 401 && { "www-authenticate": "Bearer" }),
    "content-type": type,
    "content-length": Buffer.byteLength(body),
    ...headers,
  });
  response.end(body);
}

/** Loaded when somebody comes: all that follows from the table of calls takes 8 MB. */
function loadAnswers() {
  return Promise.all([import("./api.ts"), import("./browser.ts"), import("./badge.ts")]);
}
