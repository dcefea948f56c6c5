import type { IncomingMessage } from "node:http";
import { pipeline } from "node:stream/promises";
import { jsonPage, type PageAnswer, problemPage } from "./answer.ts";
import type { RunClient, Visit } from "./run-client.ts";

/** Where commands with `--server` call. */
export const commandsPath = "/api/commands";

/** What `hotpush --server` asks `run`, in the words that they share: docs/api.md has the API for programs. */
export interface PassedCall {
  readonly visit: Visit;
  readonly method: "GET" | "POST";
  /** With its query. */
  readonly path: string;
  readonly body: object;
}

/** Passes a command's call on to `run` as it is, which checks the rights as for each call, and its answer back. */
export async function passOn(run: RunClient, { visit, method, path, body }: PassedCall): Promise<PageAnswer> {
  if (method === "POST") {
    const answer = await run.call(visit, "POST", path, body);
    return answer.kind === "refused" ? problemPage(answer) : jsonPage(answer.value, answer.status);
  }
  const ending = new AbortController();
  const answer = await run.open(visit, path, ending.signal);
  return "kind" in answer ? problemPage(answer) : streamed(answer, ending);
}

function streamed(answer: IncomingMessage, ending: AbortController): PageAnswer {
  return {
    kind: "stream",
    type: answer.headers["content-type"] ?? "application/octet-stream",
    write(response) {
      // A reader that goes away, or a run that stops, ends it: both sides see a connection that broke off.
      pipeline(answer, response).catch(() => response.destroy());
      response.once("close", () => ending.abort());
    },
  };
}
