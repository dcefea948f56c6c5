import type { IncomingMessage } from "node:http";
import type { Refusal } from "../../platform/http-server/answer.ts";
import { declaredBytes } from "../../platform/http-server/request-head.ts";
import { tooLarge } from "./body.ts";

/** Checks of a delivery's headers that need no secret: declared length, then content type, then encoding. */
export function checkDeliveryHead(request: IncomingMessage, limitBytes: number): Refusal | null {
  if (declaredBytes(request) > limitBytes) return tooLarge(limitBytes);
  const { "content-type": contentType = "", "content-encoding": encoding } = request.headers;
  if (!/^application\/json\s*(?:;|$)/i.test(contentType)) {
    const detail =
      "This service reads JSON. In the webhook's settings at the git host, set the content type to application/json.";
    return { code: "unsupported_media_type", detail };
  }
  if (encoding !== undefined && encoding !== "identity") {
    const detail =
      "The body is compressed, which no git host does by itself: switch off request compression in the proxy before this service.";
    return { code: "unsupported_encoding", detail };
  }
  return null;
}
