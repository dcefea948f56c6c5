import type { IncomingHttpHeaders } from "node:http";
import type { SignatureClaim } from "./host.ts";

/** A header that carries a hex HMAC-SHA256 of the body, behind `prefix`. */
export interface SignatureHeader {
  readonly header: string;
  readonly prefix: "sha256=" | "";
}

/** 64 hex digits and nothing else: `Buffer.from(text, "hex")` alone would drop what follows the first bad digit. */
const digestHex = /^[0-9a-fA-F]{64}$/;

/**
 * Makes the reader of a host's body signatures. Of the headers listed at least one must be there, and each that is
 * there must be well-formed; two of the same name reach us joined by a comma and are refused for that.
 */
export function bodySignatureIn(...signatureHeaders: readonly SignatureHeader[]) {
  return (headers: IncomingHttpHeaders): SignatureClaim => {
    const digests: Buffer[] = [];
    for (const { header, prefix } of signatureHeaders) {
      const value = headers[header];
      if (value === undefined) continue;
      const hex = typeof value === "string" && value.startsWith(prefix) ? value.slice(prefix.length) : "";
      if (!digestHex.test(hex))
        return { kind: "malformed", reason: `${header} is not ${prefix}<64 hex digits>` };
      digests.push(Buffer.from(hex, "hex"));
    }
    return digests.length > 0 ? { kind: "body", digests } : { kind: "missing" };
  };
}
