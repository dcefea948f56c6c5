import { parseLines } from "#calls/client";
import type { ControlEvent } from "#calls/shapes";
import { whenDrained } from "#calls/when-drained";
import { isFinished } from "#deployments/states";
import { type PageAnswer, problemPage } from "./answer.ts";
import type { RunClient, Visit } from "./run-client.ts";

/** Proxies close a connection that is silent for long. */
const beatMs = 15_000;

/**
 * Server-sent events (HTML Living Standard, section 9.2). The id of a line is the place in the log after it, by which a browser
 * goes on after a lost connection without a lost or doubled line.
 */
export async function sendEvents(
  run: RunClient,
  visit: Visit,
  path: string,
  last: unknown,
): Promise<PageAnswer> {
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
