import type { IncomingMessage } from "node:http";
import { pipeline } from "node:stream/promises";
import { findCall } from "#calls/table";
import { readText } from "#platform/http-server/read-text";
import { jsonPage, type PageAnswer, problemPage } from "./answer.ts";
import type { RunClient, Visit } from "./run-client.ts";
import { sendEvents } from "./send-events.ts";
import { findViewer } from "./visitor.ts";

export const longestBodyBytes = 16 * 1024;

/**
 * Answers a program: each call of the table that a visitor may make is passed on to `run`, which checks the credential before
 * it reads what the call takes. No path is passed on but one that is made from the table.
 *
 * @param path without the `/api` before it
 */
export async function answerProgram(
  request: IncomingMessage,
  visit: Visit,
  run: RunClient,
  path: string,
  query: URLSearchParams,
): Promise<PageAnswer> {
  const { method = "", headers } = request;
  if (method === "GET" && path === "/openapi.json") return jsonPage(await document());
  const found = findCall(method, path);
  // A session begins in a browser, which keeps it in a cookie.
  if (found === null || found.row.right === "server" || found.row.right === "nobody")
    return problemPage({ code: "not_found", detail: "Nothing is here. See /api/openapi.json." });
  const target = query.size === 0 ? path : `${path}?${query}`;
  if (method === "POST") {
    // The body of somebody whom `run` does not know is not read: it could take long to come.
    const known = await findViewer(run, visit);
    if (known.kind === "refused") return problemPage(known);
    const body = await readText(request, longestBodyBytes);
    if (body === null)
      return problemPage({ code: "payload_too_large", detail: "The page takes bodies up to 16 KiB." });
    const key = headers["idempotency-key"];
    const own = typeof key === "string" ? { "idempotency-key": key } : {};
    const answer = await run.call(visit, "POST", target, body, own);
    return answer.kind === "refused" ? problemPage(answer) : jsonPage(answer.value, answer.status);
  }
  const wantsEvents = found.name === "events" && headers.accept !== "application/x-ndjson";
  if (wantsEvents && query.get("follow") !== "false")
    return await sendEvents(run, visit, path, headers["last-event-id"] ?? query.get("from"));
  if (typeof found.row.gives !== "string") {
    const answer = await run.call(visit, "GET", target);
    return answer.kind === "refused" ? problemPage(answer) : jsonPage(answer.value, answer.status);
  }
  return await streamed(run, visit, target);
}

/** Loaded when somebody reads it: it is long. */
let written: object | null = null;
async function document(): Promise<object> {
  written ??= (await import("#calls/openapi")).openApi();
  return written;
}

/** Passes an answer on as it is read: it may be long, or go on. */
export async function streamed(run: RunClient, visit: Visit, target: string): Promise<PageAnswer> {
  const ending = new AbortController();
  const answer = await run.open(visit, target, ending.signal);
  if ("kind" in answer) return problemPage(answer);
  return {
    kind: "stream",
    type: answer.headers["content-type"] ?? "application/octet-stream",
    async write(response) {
      response.once("close", () => ending.abort());
      // A reader that goes away, or a run that stops, ends it: both sides see a connection that broke off.
      await pipeline(answer, response).catch(() => response.destroy());
    },
  };
}
