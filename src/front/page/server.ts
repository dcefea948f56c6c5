import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { BlockList } from "node:net";
import type { Log } from "#log";
import { clientAddress } from "#platform/client-address";
import { problemAnswer, type Refusal, sendAnswer } from "#platform/http-server/answer";
import { hardenServer, serverOptions } from "#platform/http-server/hardening";
import { readText } from "#platform/http-server/read-text";
import { checkHead, declaredBytes } from "#platform/http-server/request-head";
import { createHttpServer } from "#platform/http-server/server";
import { type PageAnswer, problemPage, sendPage } from "./answer.ts";
import { answerProgram, longestBodyBytes, streamed } from "./api.ts";
import { findAsset } from "./assets.ts";
import { readSession } from "./cookie.ts";
import { takeForm } from "./forms.ts";
import type { RunClient, Visit } from "./run-client.ts";
import type { PageSettings } from "./settings.ts";
import { showScreen } from "./site.ts";

const tooLarge: Refusal = {
  code: "payload_too_large",
  detail: "The page takes bodies up to 16 KiB.",
  closing: "refused",
};

/** A browser that wakes up tries each connection that it had, and of those that died in its sleep it learns after seconds. */
const keepAliveTimeout = 5_000;

/** Requests of a visitor at the same time, most of which are open pages that wait for events. */
const mostOfVisitor = 256;
const tooMany = {
  code: "too_many_requests",
  detail: `This session or token has ${mostOfVisitor} requests open. Close some of them.`,
} as const;

/** The HTTP server of the page. It does not listen yet. */
export function createPage(settings: PageSettings, run: RunClient, log: Log): Server {
  const enter = createPlaces();
  const server = createHttpServer({ ...serverOptions, keepAliveTimeout }, log, async (request, response) => {
    const refusal = checkHead(request) ?? (declaredBytes(request) > longestBodyBytes ? tooLarge : null);
    if (refusal) return sendAnswer(response, problemAnswer(refusal));
    const visit = visitOf(request, settings);
    const hasPlace = enter(visit, response);
    await sendPage(response, hasPlace ? await answer(request, visit, settings, run) : problemPage(tooMany));
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

async function answer(
  request: IncomingMessage,
  visit: Visit,
  settings: PageSettings,
  run: RunClient,
): Promise<PageAnswer> {
  const address = readAddress(request.url);
  if (address === null) return problemPage({ code: "malformed_request", detail: "This is no path." });
  const { pathname, searchParams: query } = address;
  if (pathname === "/health")
    return { kind: "body", status: 200, type: "application/json", body: '{"status":"ok"}' };
  // Another site's name that leads here must not read anything with a visitor's browser (DNS rebinding).
  if (request.headers.host !== settings.url.host)
    return problemPage({ code: "wrong_host", detail: `The page is at ${settings.url.origin}.` });
  if (pathname.startsWith("/api/"))
    return await answerProgram(
      request,
      pathname === "/api/metrics" ? fromProxy(request, visit) : visit,
      ...([run, pathname.slice("/api".length), query] as const),
    );
  if (request.method === "GET" && pathname === "/metrics")
    return await streamed(run, fromProxy(request, visit), "/metrics");
  if (request.method === "GET")
    return findAsset(pathname) ?? (await showScreen({ run, visit, path: pathname, query }));
  if (request.method !== "POST")
    return problemPage({ code: "method_not_allowed", detail: "The page has GET and POST only." });
  const form = { run, visit, path: pathname, headers: request.headers, settings };
  const readFields = async () => new URLSearchParams((await readText(request, longestBodyBytes)) ?? "");
  return await takeForm(form, readFields);
}

/** An address counts as a right there, so that of a proxy which is not trusted is not the visitor's. */
function fromProxy({ headers, socket }: IncomingMessage, visit: Visit): Visit {
  const isProxy = headers["x-forwarded-for"] !== undefined || headers.forwarded !== undefined;
  const own = clientAddress({ headers: {}, socket } as IncomingMessage, new BlockList());
  return isProxy && visit.address === own ? { ...visit, address: "" } : visit;
}

/** A path that begins with two slashes would be read as another host. */
function readAddress(path = "/"): URL | null {
  return path.startsWith("/") && URL.canParse(`http://page${path}`) ? new URL(`http://page${path}`) : null;
}

const longestAgent = 200;

/** A session counts for what changes nothing, and for the page's own forms, which prove that they are. */
function visitOf(request: IncomingMessage, settings: PageSettings): Visit {
  const { authorization, cookie, "user-agent": agent = "" } = request.headers;
  const [, token = null] = /^Bearer (\S{1,100})$/i.exec(authorization ?? "") ?? [];
  const isCall = request.method !== "GET" && readAddress(request.url)?.pathname.startsWith("/api/");
  const session = isCall ? null : readSession(cookie, settings);
  return {
    credential: token ?? session,
    address: clientAddress(request, settings.trustedProxies) ?? "",
    agent: agent.slice(0, longestAgent).replaceAll(/[^\x20-\x7e]/g, "?"),
  };
}
