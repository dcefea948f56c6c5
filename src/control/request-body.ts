import type { IncomingMessage } from "node:http";
import { printable } from "../platform/terminal/printable.ts";

const mostBytes = 16 * 1024;

/** The members of the JSON object that a request carries, none where it carries nothing; null where it is no such thing. */
export async function readRequestBody(
  request: IncomingMessage,
): Promise<Readonly<Record<string, unknown>> | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > mostBytes) return null;
    chunks.push(chunk);
  }
  if (bytes === 0) return {};
  try {
    const value = JSON.parse(Buffer.concat(chunks).toString("utf8")) as unknown;
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

const longestName = 100;

/** The user that a command says it is run by, printable and bounded; null if it names none. Nothing proves it. */
export function reportedName({ requestedBy }: Readonly<Record<string, unknown>>): string | null {
  return typeof requestedBy === "string" ? printable(requestedBy, longestName).trim() || null : null;
}
