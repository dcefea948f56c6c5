import type { IncomingMessage } from "node:http";
import { pipeline } from "node:stream/promises";
import type { Call } from "../control/calls.ts";
import { jsonPage, type PageAnswer, problemPage } from "./answer.ts";
import type { RunClient, Visit } from "./run-client.ts";

/** Where commands with `--server` call. */
export const commandsPath = "/api/commands";

/** Passes a call of a command on to `run`, which checks the rights as for each call, and its answer back. */
export async function passOn(
  run: RunClient,
  visit: Visit,
  { path, query }: Call,
  body?: object,
): Promise<PageAnswer> {
  const target = query.size === 0 ? path : `${path}?${query}`;
  if (body) {
    const answer = await run.call(visit, "POST", target, body);
    return answer.kind === "refused" ? problemPage(answer) : jsonPage(answer.value, answer.status);
  }
  const ending = new AbortController();
  const answer = await run.open(visit, target, ending.signal);
  return "kind" in answer ? problemPage(answer) : streamed(answer, ending);
}

function streamed(answer: IncomingMessage, ending: AbortController): PageAnswer {
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
