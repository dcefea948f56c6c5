import { createHash, createHmac, createSecretKey, type KeyObject, timingSafeEqual } from "node:crypto";
import type { Secrets } from "../config/project.ts";
import type { Secret, SecretSlot } from "../config/secret.ts";
import type { BodySignature, StandardWebhookSignature } from "./hosts/host.ts";

/** The keys of a secret, ready for use. */
export interface SlotKeys {
  readonly slot: SecretSlot;
  readonly body: KeyObject;
  readonly standardWebhooks: KeyObject;
}

export type VerifiableSignature = BodySignature | StandardWebhookSignature;

/** Standard Webhooks leaves the tolerance open; all its reference libraries accept five minutes, both ways. */
const toleranceSeconds = 300;

/** Makes the keys once, so that no request pays for it. */
export function makeKeys({ current, previous }: Secrets): readonly SlotKeys[] {
  return [keysOf("current", current), ...(previous ? [keysOf("previous", previous)] : [])];
}

/** Standard Webhooks 1.0.0: `whsec_` and the key in base64; any other secret is used as it is. */
function keysOf(slot: SecretSlot, secret: Secret): SlotKeys {
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
