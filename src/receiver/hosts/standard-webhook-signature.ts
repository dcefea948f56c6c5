import type { IncomingHttpHeaders } from "node:http";
import type { SignatureClaim } from "./host.ts";

/** 32 bytes in base64 with its padding; the last digit before it has two bits to spare, and they are zero. */
const digestBase64 = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;

const version = "v1,";

/**
 * Reads the signatures of Standard Webhooks 1.0.0. The id and the timestamp are signed too, joined by full stops, so
 * neither may contain one. Signatures of versions other than `v1` are skipped, as the specification wants it.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export function claimStandardWebhookSignature(headers: IncomingHttpHeaders): SignatureClaim {
  const signatures = headers["webhook-signature"];
  if (signatures === undefined) return { kind: "missing" };
  const id = headers["webhook-id"];
  if (typeof id !== "string" || !/^[^.]+$/.test(id))
    return malformed("webhook-id is not text without a full stop");
  const timestamp = headers["webhook-timestamp"];
  if (typeof timestamp !== "string" || !/^\d{1,15}$/.test(timestamp))
    return malformed("webhook-timestamp is not a whole number of seconds");
  const encoded = String(signatures)
    .split(" ")
    .filter((signature) => signature.startsWith(version))
    .map((signature) => signature.slice(version.length));
  if (encoded.length === 0 || !encoded.every((text) => digestBase64.test(text)))
    return malformed("webhook-signature is not a list of v1,<base64 of 32 bytes>");
  const digests = encoded.map((text) => Buffer.from(text, "base64"));
  return { kind: "standard-webhooks", id, timestamp, digests };
}

function malformed(reason: string): SignatureClaim {
  return { kind: "malformed", reason };
}
