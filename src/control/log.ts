import { createReadStream } from "node:fs";
import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { type LogLine, type LogPage, logBytes, logPath, readLog, readLogPage } from "../runner/log-file.ts";
import { type LineJson, lineJson } from "./deployment-json.ts";
import { notFound, wantedDeployment } from "./history.ts";
import { type ControlContext, type ControlReply, type ControlRequest, jsonReply, refusal } from "./route.ts";
import { whenDrained } from "./when-drained.ts";

/**
 * `GET /deployments/{id}/log`: what a deployment has printed so far. With `from` and `to`, the lines that begin between these
 * two bytes; with `find`, those with this text, in upper or lower case. `format=timed`: as the file has it, byte by byte.
 */
export function showLog(
  { store, logStatePath }: ControlContext,
  { id, query }: ControlRequest,
): ControlReply {
  const deployment = wantedDeployment(store, id);
  if (deployment === null) return notFound(id);
  const [from, to] = [Number(query.get("from") ?? 0), Number(query.get("to") ?? Number.MAX_SAFE_INTEGER)];
  if (![from, to].every(Number.isSafeInteger) || from < 0 || to < from)
    return refusal(400, "The part of a log is given by two places in it: from=0&to=1000");
  const path = logPath(logStatePath, deployment.id);
  const find = (query.get("find") ?? "").toLowerCase();
  const type = "text/plain; charset=utf-8";
  switch (query.get("format") ?? "text") {
    case "text":
      return {
        kind: "stream",
        type,
        write: (response) => sendLines(response, readLog(path, from, to), find, asText),
      };
    case "ndjson":
      return {
        ...{ kind: "stream", type: "application/x-ndjson" },
        write: (response) => sendLines(response, readLog(path, from, to), find, asJson),
      };
    case "timed":
      return {
        ...{ kind: "stream", type },
        async write(response) {
          if (logBytes(path) <= from || to === from) {
            response.end();
            return;
          }
          await pipeline(createReadStream(path, { start: from, end: to - 1 }), response).catch(() =>
            response.destroy(),
          );
        },
      };
    default:
      return refusal(400, "The format of a log is text, timed or ndjson.");
  }
}

async function sendLines(
  response: ServerResponse,
  log: Iterable<readonly LogLine[]>,
  find: string,
  write: (line: LogLine, isFirst: boolean) => string,
): Promise<void> {
  let isFirst = true;
  for (const lines of log) {
    const found = find === "" ? lines : lines.filter(({ text }) => text.toLowerCase().includes(find));
    response.write(found.map((line, index) => write(line, isFirst && index === 0)).join(""));
    if (found.length > 0) isFirst = false;
    await whenDrained(response);
    if (response.destroyed) return;
  }
  response.end(isFirst || write !== asText ? "" : "\n");
}

/** As it was printed: a line that was too long is one again. */
function asText({ text, continues }: LogLine, isFirst: boolean): string {
  return `${isFirst || continues ? "" : "\n"}${text}`;
}

function asJson(line: LogLine): string {
  return `${JSON.stringify(lineJson(line))}\n`;
}

/** What a reader sees who turns the pages of a log. */
export interface LogPageJson extends Omit<LogPage, "lines"> {
  readonly lines: readonly LineJson[];
}

/** `GET /deployments/{id}/log/page`: the page of the log that ends at the byte `to`, else the last one. */
export function showLogPage(
  { store, logStatePath }: ControlContext,
  { id, query }: ControlRequest,
): ControlReply {
  const deployment = wantedDeployment(store, id);
  if (deployment === null) return notFound(id);
  const to = query.get("to");
  if (to !== null && !/^\d{1,15}$/.test(to))
    return refusal(400, "The end of a page must be the number of a byte.");
  const page = readLogPage(logPath(logStatePath, deployment.id), to === null ? undefined : Number(to));
  return jsonReply({ ...page, lines: page.lines.map(lineJson) } satisfies LogPageJson);
}
