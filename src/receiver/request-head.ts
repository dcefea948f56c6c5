import type { IncomingMessage } from "node:http";
import { formatSize } from "../config/size.ts";
import type { HttpProblemCode, Problem } from "../problems.ts";

/** Node drops headers beyond this many without a word; a request that reaches it is refused. */
export const maxHeaders = 100;

/** What is wrong with a request's headers, or null; `isClosing` where the rest of it is not worth reading. */
export interface HeadFault {
  readonly problem: Problem<HttpProblemCode>;
  readonly isClosing: boolean;
}

/** Checks that hold for every path, on the headers alone: their number, the version, one Host, a framing that is not ambiguous. */
export function checkHead(request: IncomingMessage): HeadFault | null {
  const { rawHeaders, headers } = request;
  if (rawHeaders.length / 2 >= maxHeaders) {
    return fault("headers_too_large", `The request has ${maxHeaders} header fields or more.`, true);
  }
  const { httpVersion } = request;
  if (httpVersion !== "1.1" && httpVersion !== "1.0") {
    return fault("malformed_request", `This service speaks HTTP/1.1, not HTTP/${httpVersion}.`, true);
  }
  const hostCount = countOf(rawHeaders, "host");
  if (hostCount > 1) return fault("malformed_request", "The request has two Host headers.", true);
  if (hostCount === 0 && httpVersion === "1.1") {
    return fault("malformed_request", "The request has no Host header.", true);
  }
  const coding = headers["transfer-encoding"];
  const isPlainChunked = coding === undefined || (coding === "chunked" && httpVersion === "1.1");
  if (!isPlainChunked) {
    return fault("malformed_request", "The only Transfer-Encoding taken is chunked, on HTTP/1.1.", true);
  }
  return null;
}

/** Checks of a delivery's headers that need no secret: declared length, then content type, then encoding. */
export function checkDeliveryHead(request: IncomingMessage, limitBytes: number): HeadFault | null {
  const { headers } = request;
  if (declaredBytes(request) > limitBytes) return tooLarge(limitBytes);
  if (!isJson(headers["content-type"])) {
    const detail =
      "This service reads JSON. In the webhook's settings at the git host, set the content type to application/json.";
    return fault("unsupported_media_type", detail, false);
  }
  const encoding = headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") {
    const detail =
      "The body is compressed, which no git host does by itself: switch off request compression in the proxy before this service.";
    return fault("unsupported_encoding", detail, false);
  }
  return null;
}

export function tooLarge(limitBytes: number): HeadFault {
  const detail = `The body is larger than ${formatSize(limitBytes)}, the value of WEBHOOK_BODY_LIMIT. Raise it, or push less at once.`;
  return fault("payload_too_large", detail, true);
}

/** The Content-Length, which Node has checked to be a number, or 0. */
export function declaredBytes(request: IncomingMessage): number {
  return Number(request.headers["content-length"] ?? 0);
}

function isJson(contentType: string | undefined): boolean {
  return contentType !== undefined && /^application\/json\s*(?:;|$)/i.test(contentType);
}

function countOf(rawHeaders: readonly string[], name: string): number {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const raw = rawHeaders[index];
    if (raw?.length === name.length && raw.toLowerCase() === name) count += 1;
  }
  return count;
}

function fault(code: HttpProblemCode, detail: string, isClosing: boolean): HeadFault {
  return { problem: { code, detail }, isClosing };
}
