import { createHash, createHmac, createSecretKey, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { Secrets } from "#config/project";
import { makeSecret, type Secret, type SecretSlot } from "#config/secret";

/** Signatures as sent, decoded to bytes but not yet compared with anything. */
export type SignatureClaim =
  | { readonly kind: "missing" }
  | { readonly kind: "malformed"; readonly reason: string }
  | { readonly kind: "unsupported"; readonly help: string }
  | VerifiableSignature;

export type VerifiableSignature = {
  readonly digests: readonly Buffer[];
} /** HMAC-SHA256 over the body; if several headers carry one, each must be right. */ & (
  | { readonly kind: "body" }
  /** Standard Webhooks 1.0.0: HMAC-SHA256 over `id.timestamp.body`; one of several signatures must be right. */
  | { readonly kind: "standard-webhooks"; readonly id: string; readonly timestamp: string }
);

/** 64 hex digits and nothing else: `Buffer.from(text, "hex")` alone would drop everything after the first bad digit. */
const digestHex = /^[0-9a-fA-F]{64}$/;
/** 32 bytes in base64 with padding; the last digit before it has two spare bits, which are zero. */
const digestBase64 = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;

/**
 * Reads the signature that a request claims. At least one of the listed headers must be there, and each that is there must be
 * well formed: hex, in the X-Hub headers after `sha256=`. Node joins two headers of the same name with a comma, so they are
 * refused. `webhook-signature` is that of Standard Webhooks.
 */
export function readSignature(headers: IncomingHttpHeaders, names: readonly string[]): SignatureClaim {
  const digests: Buffer[] = [];
  for (const name of names) {
    const value = headers[name];
    if (value === undefined) continue;
    if (name === "webhook-signature") return readStandardWebhook(headers, String(value));
    const prefix = name.startsWith("x-hub-") ? "sha256=" : "";
    const hex = typeof value === "string" && value.startsWith(prefix) ? value.slice(prefix.length) : "";
    if (!digestHex.test(hex)) return malformed(`${name} is not ${prefix}<64 hex digits>`);
    digests.push(Buffer.from(hex, "hex"));
  }
  return digests.length > 0 ? { kind: "body", digests } : { kind: "missing" };
}

/**
 * Reads the signatures of Standard Webhooks 1.0.0. The id and the timestamp are signed too, joined by full stops, so
 * neither may contain one. As the specification requires, signatures of versions other than `v1` are skipped.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
function readStandardWebhook(headers: IncomingHttpHeaders, signatures: string): SignatureClaim {
  const id = headers["webhook-id"];
  if (typeof id !== "string" || !/^[^.]+$/.test(id))
    return malformed("webhook-id is not text without a full stop");
  const timestamp = headers["webhook-timestamp"];
  if (typeof timestamp !== "string" || !/^\d{1,15}$/.test(timestamp))
    return malformed("webhook-timestamp is not a whole number of seconds");
  const encoded = Array.from(signatures.matchAll(/(?<=^| )v1,([^ ]*)/g), ([, text = ""]) => text);
  if (encoded.length === 0 || !encoded.every((text) => digestBase64.test(text)))
    return malformed("webhook-signature is not a list of v1,<base64 of 32 bytes>");
  const digests = encoded.map((text) => Buffer.from(text, "base64"));
  return { kind: "standard-webhooks", id, timestamp, digests };
}

function malformed(reason: string): SignatureClaim {
  return { kind: "malformed", reason };
}

/** The keys of a secret, ready for use. */
export type SlotKeys = ReturnType<typeof keysOf>;

/** Standard Webhooks leaves the tolerance open; all its reference libraries accept five minutes, both ways. */
const toleranceSeconds = 300;

/** In place of a previous secret: each request is verified with two keys, so that its time tells nobody of a rotation. */
const decoySecret = makeSecret(randomBytes(32).toString("hex"));

/** Makes the keys once, so that no request pays for it. */
export function makeKeys({ current, previous }: Secrets): readonly SlotKeys[] {
  return [keysOf("current", current), keysOf("previous", previous ?? decoySecret)];
}

/** Standard Webhooks 1.0.0: `whsec_` and the key in base64; any other secret is used as it is. */
function keysOf(slot: SecretSlot, secret: Secret) {
  const text = secret.reveal();
  const body = createSecretKey(Buffer.from(text));
  if (!text.startsWith("whsec_")) return { slot, body, standardWebhooks: body };
  const decoded = Buffer.from(text.slice("whsec_".length), "base64");
  return { slot, body, standardWebhooks: createSecretKey(decoded) };
}

/**
 * Starts to verify a body that is still arriving against `signature`, with all keys.
 *
 * @returns `update` takes bytes as they arrive; `verdict`, called once at the end, gives the secret that made the signature,
 *   or null if none of ours did
 */
export function startVerification(signature: VerifiableSignature, keys: readonly SlotKeys[]) {
  const isStandard = signature.kind === "standard-webhooks";
  const hmacs = keys.map((key) => createHmac("sha256", isStandard ? key.standardWebhooks : key.body));
  const update = (data: Buffer | string) => {
    for (const hmac of hmacs) hmac.update(data);
  };
  if (isStandard) update(`${signature.id}.${signature.timestamp}.`);
  return {
    update,
    verdict(): SecretSlot | null {
      let matching: SecretSlot | null = null;
      for (const [index, { slot }] of keys.entries()) {
        const hmac = hmacs[index];
        if (hmac && isMatch(signature, hmac.digest())) matching ??= slot;
      }
      return matching;
    },
  };
}

/** True if a Standard Webhooks timestamp is within the tolerance of our clock; the other signatures have none. */
export function isFresh(signature: VerifiableSignature, nowMs: number): boolean {
  if (signature.kind === "body") return true;
  return Math.abs(nowMs / 1_000 - Number(signature.timestamp)) <= toleranceSeconds;
}

/**
 * Identifies a delivery by its signed bytes. A Standard Webhooks timestamp is left out: it is that of the attempt, while
 * the id stays the same when a delivery is sent again.
 *
 * @returns SHA-256 in hex
 */
export function deliveryDigest(signature: VerifiableSignature, body: Buffer): string {
  const hash = createHash("sha256");
  if (signature.kind === "standard-webhooks") hash.update(`${signature.id}.`);
  return hash.update(body).digest("hex");
}

/** Compares with every digest sent, in constant time and without leaving early. */
function isMatch(signature: VerifiableSignature, expected: Buffer): boolean {
  let matches = 0;
  for (const digest of signature.digests) {
    if (digest.length === expected.length && timingSafeEqual(digest, expected)) matches += 1;
  }
  return matches > 0 && (signature.kind !== "body" || matches === signature.digests.length);
}
