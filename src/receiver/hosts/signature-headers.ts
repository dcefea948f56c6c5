import type { IncomingHttpHeaders } from "node:http";
import type { SignatureClaim } from "./host.ts";

/** 64 hex digits and nothing else: `Buffer.from(text, "hex")` alone would drop everything after the first bad digit. */
const digestHex = /^[0-9a-fA-F]{64}$/;
/** 32 bytes in base64 with padding; the last digit before it has two spare bits, which are zero. */
const digestBase64 = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;

/**
 * Makes the reader of a host's body signatures. At least one of the listed headers must be there, and each that is there
 * must be well formed: hex, in the X-Hub headers after `sha256=`. Node joins two headers of the same name with a comma, so
 * they are refused.
 */
export function bodySignatureIn(...names: readonly string[]) {
  return (headers: IncomingHttpHeaders): SignatureClaim => {
    const digests: Buffer[] = [];
    for (const name of names) {
      const value = headers[name];
      if (value === undefined) continue;
      const prefix = name.startsWith("x-hub-") ? "sha256=" : "";
      const hex = typeof value === "string" && value.startsWith(prefix) ? value.slice(prefix.length) : "";
      if (!digestHex.test(hex)) return malformed(`${name} is not ${prefix}<64 hex digits>`);
      digests.push(Buffer.from(hex, "hex"));
    }
    return digests.length > 0 ? { kind: "body", digests } : { kind: "missing" };
  };
}

/**
 * Reads the signatures of Standard Webhooks 1.0.0. The id and the timestamp are signed too, joined by full stops, so
 * neither may contain one. As the specification requires, signatures of versions other than `v1` are skipped.
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
  const encoded = Array.from(String(signatures).matchAll(/(?<=^| )v1,([^ ]*)/g), ([, text = ""]) => text);
  if (encoded.length === 0 || !encoded.every((text) => digestBase64.test(text)))
    return malformed("webhook-signature is not a list of v1,<base64 of 32 bytes>");
  const digests = encoded.map((text) => Buffer.from(text, "base64"));
  return { kind: "standard-webhooks", id, timestamp, digests };
}

function malformed(reason: string): SignatureClaim {
  return { kind: "malformed", reason };
}
