import type { IncomingMessage } from "node:http";
import { pipeline } from "node:stream/promises";
import { calls, findCall, isForVisitors, requestFor, statusOf } from "#calls/table";
import { readText } from "#platform/http-server";
import { jsonPage, longestBodyBytes, type PageAnswer, problemPage } from "./answer.ts";
import type { RunClient, Visit } from "./run-client.ts";

/** Made when somebody reads it, and kept: it is long, and anybody may ask for it. */
let openApiPage: PageAnswer | null = null;

/**
 * Answers a program: each call of the table that a visitor may make is passed on to `run`, which checks the credential before
 * it reads what the call takes. No path is passed on but one that is made from the table.
 *
 * @param path without the `/api` before it
 * @throws ProblemError if `run` refuses
 */
export async function answerProgram(
  request: IncomingMessage,
  visit: Visit,
  run: RunClient,
  path: string,
  query: URLSearchParams,
): Promise<PageAnswer> {
  const { method = "" } = request;
  if (method === "GET" && path === "/openapi.json") {
    openApiPage ??= jsonPage((await import("#calls/openapi")).openApi());
    return openApiPage;
  }
  const found = findCall(method, path);
  // A session begins in a browser, which keeps it in a cookie.
  if (found === null || !isForVisitors(found.row))
    return problemPage({ code: "not_found", detail: "Nothing is here. See /api/openapi.json." });
  const target = query.size === 0 ? path : `${path}?${query}`;
  if (typeof found.row.gives === "string") return await streamed(run, visit, target);
  if (method === "GET") return jsonPage(await run.call(visit, { method: "GET", path: target }));
  // The body of somebody whom `run` does not know is not read: it could take long to come.
  await run.call(visit, requestFor(calls.visitor, {}));
  const body = await readText(request, longestBodyBytes);
  if (body === null)
    return problemPage({ code: "payload_too_large", detail: "The page takes bodies up to 16 KiB." });
  return jsonPage(await run.call(visit, { method: "POST", path: target, body }), statusOf(found.row));
}

/** Passes an answer on as it is read: it may be long, or go on. */
export async function streamed(run: RunClient, visit: Visit, target: string): Promise<PageAnswer> {
  const ending = new AbortController();
  const answer = await run.open(visit, target, ending.signal);
  return {
    kind: "stream",
    type: answer.headers["content-type"] ?? "application/octet-stream",
    async write(response) {
      response.once("close", () => ending.abort());
      if (response.destroyed) answer.destroy();
      // A reader that goes away, or a run that stops, ends it: both sides see a connection that broke off.
      await pipeline(answer, response).catch(() => response.destroy());
    },
  };
}
