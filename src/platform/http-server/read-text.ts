import type { IncomingMessage } from "node:http";

/** Reads the body of a request as text. @returns null if it has more than `mostBytes` */
export async function readText(request: IncomingMessage, mostBytes: number): Promise<string | null> {
  // One buffer, because a body can be sent in pieces of one byte, and each would take some hundred.
  const body = Buffer.alloc(mostBytes);
  let bytes = 0;
  // A sender of too much still reads why it is refused.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    if (bytes + chunk.length > mostBytes) return null;
    bytes += chunk.copy(body, bytes);
  }
  return body.toString("utf8", 0, bytes);
}
