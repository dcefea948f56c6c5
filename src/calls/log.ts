import { createReadStream } from "node:fs";
import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { type LogLine, logBytes, readLog } from "#runner/log-file";
import type { Stream } from "./call.ts";
import { lineJson } from "./shapes.ts";
import { whenDrained } from "./when-drained.ts";

export interface LogWanted {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  readonly find?: string | undefined;
  readonly format?: "text" | "ndjson" | "timed" | undefined;
}

/**
 * What a deployment has printed so far. With `from` and `to`, the lines that begin between these two bytes; with `find`, those
 * with this text, in upper or lower case. `timed`: as the file at `path` has it, byte by byte.
 */
export function logIn(path: string, wanted: LogWanted): Stream {
  const { from = 0, to = Number.MAX_SAFE_INTEGER, find = "", format = "text" } = wanted;
  if (format !== "timed") {
    const [write, type] = format === "text" ? [asText] : [asJson, "application/x-ndjson"];
    const send = (response: ServerResponse) =>
      sendLines(response, readLog(path, from, to), find.toLowerCase(), write);
    return { kind: "stream", write: send, ...(type && { type }) };
  }
  return {
    kind: "stream",
    async write(response) {
      if (logBytes(path) <= from || to <= from) {
        response.end();
        return;
      }
      const part = createReadStream(path, { start: from, end: to - 1 });
      await pipeline(part, response).catch(() => response.destroy());
    },
  };
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

function asText({ text }: LogLine, isFirst: boolean): string {
  return `${isFirst ? "" : "\n"}${text}`;
}

function asJson(line: LogLine): string {
  return `${JSON.stringify(lineJson(line))}\n`;
}
