import type { IncomingMessage } from "node:http";
import type { HttpProblemCode } from "#problems";
import type { Refusal } from "./answer.ts";

/** Node drops headers beyond this many without an error; a request that reaches it is refused. */
export const maxHeaders = 100;

/** Checks for every path, on the headers alone: their number, the version, one Host, an unambiguous framing. */
export function checkHead({ rawHeaders, headers, httpVersion }: IncomingMessage): Refusal | null {
  if (rawHeaders.length / 2 >= maxHeaders) {
    return closing("headers_too_large", `The request has ${maxHeaders} header fields or more.`);
  }
  if (httpVersion !== "1.1" && httpVersion !== "1.0") {
    return closing("malformed_request", `This service speaks HTTP/1.1, not HTTP/${httpVersion}.`);
  }
  const hostCount = countOf(rawHeaders, "host");
  if (hostCount > 1) return closing("malformed_request", "The request has two Host headers.");
  if (hostCount === 0 && httpVersion === "1.1") {
    return closing("malformed_request", "The request has no Host header.");
  }
  const coding = headers["transfer-encoding"];
  const isPlainChunked = coding === undefined || (coding === "chunked" && httpVersion === "1.1");
  if (isPlainChunked) return null;
  return closing("malformed_request", "The only Transfer-Encoding accepted is chunked, on HTTP/1.1.");
}

/** The Content-Length, which Node has checked to be a number, or 0. */
export function declaredBytes(request: IncomingMessage): number {
  return Number(request.headers["content-length"] ?? 0);
}

function countOf(rawHeaders: readonly string[], name: string): number {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const raw = rawHeaders[index];
    if (raw?.length === name.length && raw.toLowerCase() === name) count += 1;
  }
  return count;
}

function closing(code: HttpProblemCode, detail: string): Refusal {
  return { code, detail, closing: "refused" };
}
