import { pipeline } from "node:stream/promises";
import { type PageAnswer, problemPage } from "../answer.ts";
import type { Api, ApiRequest } from "./route.ts";

/** A log is passed on as it is read: it may be long. */
export async function sendLog({ run }: Api, { visit, parameters, query }: ApiRequest): Promise<PageAnswer> {
  const format = query.get("format");
  const asEvents = format === "ndjson";
  const part = new URLSearchParams();
  for (const name of ["from", "to"]) if (query.has(name)) part.set(name, query.get(name) ?? "");
  const path = asEvents ? "events?follow=false" : format === "times" ? "times" : `log?${part}`;
  const ending = new AbortController();
  const answer = await run.open(visit, `/deployments/${parameters.id}/${path}`, ending.signal);
  if ("kind" in answer) return problemPage(answer);
  return {
    kind: "stream",
    type: asEvents ? "application/x-ndjson" : "text/plain; charset=utf-8",
    async write(response) {
      response.once("close", () => ending.abort());
      // A reader that goes away, or a run that stops, ends it: both sides see a connection that broke off.
      await pipeline(answer, response).catch(() => response.destroy());
    },
  };
}
