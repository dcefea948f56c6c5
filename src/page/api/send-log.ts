import { pipeline } from "node:stream/promises";
import { type PageAnswer, problemPage } from "../answer.ts";
import type { Api, ApiRequest } from "./route.ts";

/** A log is passed on as it is read: it may be long. */
export async function sendLog({ run }: Api, { visit, parameters, query }: ApiRequest): Promise<PageAnswer> {
  const wanted = new URLSearchParams(
    ["from", "to", "find", "format"].flatMap((name) =>
      query.getAll(name).map((value): [string, string] => [name, value]),
    ),
  );
  const ending = new AbortController();
  const answer = await run.open(visit, `/deployments/${parameters.id}/log?${wanted}`, ending.signal);
  if ("kind" in answer) return problemPage(answer);
  return {
    kind: "stream",
    type: answer.headers["content-type"] ?? "text/plain; charset=utf-8",
    async write(response) {
      response.once("close", () => ending.abort());
      // A reader that goes away, or a run that stops, ends it: both sides see a connection that broke off.
      await pipeline(answer, response).catch(() => response.destroy());
    },
  };
}
