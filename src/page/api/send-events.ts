import type { ServerResponse } from "node:http";
import type { ControlEvent } from "../../control/deployment-json.ts";
import { type PageAnswer, problemPage } from "../answer.ts";
import type { Api, ApiRequest } from "./route.ts";

/** Proxies close a connection that is silent for long. */
const beatMs = 15_000;
/** A reader that is further behind is cut off; it goes on by itself where it was. */
const mostWaitingBytes = 1024 ** 2;

/**
 * Server-sent events (HTML Living Standard, section 9.2). The id of a line is `<attempt>:<byte>`, by which a browser goes
 * on after a lost connection without a lost or doubled line.
 */
export async function sendEvents({ followers }: Api, request: ApiRequest): Promise<PageAnswer> {
  const { visit, parameters, query, headers } = request;
  const last = headers["last-event-id"] ?? query.get("from");
  const from = typeof last === "string" && /^\d{1,9}:\d{1,15}$/.test(last) ? last : null;
  const following = await followers.follow(visit, Number(parameters.id), from);
  if (following.kind === "refused") return problemPage(following);
  return {
    kind: "stream",
    type: "text/event-stream",
    write(response) {
      if (response.destroyed) return following.stop();
      const beat = setInterval(() => response.write(":\n\n"), beatMs).unref();
      let attempt = 1;
      following.start({
        onEvent(event) {
          if (event.event === "deployment") attempt = event.deployment.attempts;
          if (response.writableLength > mostWaitingBytes) response.destroy();
          else write(response, event, attempt);
        },
        ready: () => (response.writableNeedDrain ? drained(response) : Promise.resolve()),
        onEnd(isOver) {
          if (isOver) response.write("event: end\ndata: {}\n\n");
          response.end();
        },
      });
      response.once("close", () => {
        clearInterval(beat);
        following.stop();
      });
    },
  };
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    if (response.destroyed) resolve();
    else response.on("drain", done).on("close", done);
  });
}

function write(response: ServerResponse, event: ControlEvent, attempt: number): void {
  const id = event.event === "line" ? `id: ${attempt}:${event.endByte}\n` : "";
  response.write(`${id}event: ${event.event}\ndata: ${JSON.stringify(event)}\n\n`);
}
