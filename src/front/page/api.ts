import type { IncomingMessage } from "node:http";
import { pipeline } from "node:stream/promises";
import { parseLines } from "#calls/client";
import type { ControlEvent } from "#calls/shapes";
import { callPath, findCall, isForVisitors } from "#calls/table";
import { whenDrained } from "#calls/when-drained";
import { isFinished } from "#deployments/deployment";
import { readText } from "#platform/http-server";
import { jsonPage, longestBodyBytes, type PageAnswer, problemPage } from "./answer.ts";
import type { RunClient, Visit } from "./run-client.ts";

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
  // Loaded when somebody reads it: it is long.
  if (method === "GET" && path === "/openapi.json")
    return jsonPage((await import("#calls/openapi")).openApi());
  const found = findCall(method, path);
  // A session begins in a browser, which keeps it in a cookie.
  if (found === null || !isForVisitors(found.row))
    return problemPage({ code: "not_found", detail: "Nothing is here. See /api/openapi.json." });
  const target = query.size === 0 ? path : `${path}?${query}`;
  if (method === "POST") {
    // The body of somebody whom `run` does not know is not read: it could take long to come.
    const known = await run.call(visit, "GET", callPath("visitor", {}));
    if (known.kind === "refused") return problemPage(known);
    const body = await readText(request, longestBodyBytes);
    if (body === null)
      return problemPage({ code: "payload_too_large", detail: "The page takes bodies up to 16 KiB." });
    const answer = await run.call(visit, "POST", target, body);
    return answer.kind === "refused" ? problemPage(answer) : jsonPage(answer.value, answer.status);
  }
  const wantsEvents = found.name === "events" && headers.accept !== "application/x-ndjson";
  if (wantsEvents && query.get("follow") !== "false")
    return await sendEvents(run, visit, path, headers["last-event-id"] ?? query.get("from"));
  if (typeof found.row.gives === "string") return await streamed(run, visit, target);
  const answer = await run.call(visit, "GET", target);
  return answer.kind === "refused" ? problemPage(answer) : jsonPage(answer.value, answer.status);
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

/** Proxies close a connection that is silent for long. */
const beatMs = 15_000;

/**
 * Server-sent events (HTML Living Standard, section 9.2). The id of a line is the place in the log after it, by which a browser
 * goes on after a lost connection without a lost or doubled line.
 */
async function sendEvents(run: RunClient, visit: Visit, path: string, last: unknown): Promise<PageAnswer> {
  const from = typeof last === "string" && /^\d{1,15}$/.test(last) ? last : "0";
  const leaving = new AbortController();
  const events = await run.open(visit, `${path}?from=${from}`, leaving.signal);
  if ("kind" in events) return problemPage(events);
  return {
    kind: "stream",
    type: "text/event-stream",
    async write(response) {
      response.once("close", () => leaving.abort());
      const beat = setInterval(() => response.write(":\n\n"), beatMs).unref();
      let isOver = false;
      try {
        for await (const event of parseLines<ControlEvent>(events)) {
          const id = event.event === "line" ? `id: ${event.endByte}\n` : "";
          const goesOn = response.write(`${id}event: ${event.event}\ndata: ${JSON.stringify(event)}\n\n`);
          isOver = event.event === "deployment" && isFinished(event.deployment.state);
          if (!goesOn) await whenDrained(response);
          if (response.destroyed) return;
        }
        if (isOver) response.write("event: end\ndata: {}\n\n");
      } catch {
        // The connection to `run` broke off: the reader comes back by itself.
      } finally {
        clearInterval(beat);
        response.end();
      }
    },
  };
}
