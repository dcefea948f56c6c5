import {
  createHash,
  createHmac,
  createSecretKey,
  type Hmac,
  type KeyObject,
  timingSafeEqual,
} from "node:crypto";
import type { SecretSlot } from "../config/secret.ts";
import type { Secrets } from "../config.ts";
import type { BodySignature, StandardWebhookSignature } from "./hosts/host.ts";

/** The keys that a signature may have been made with, ready for use. */
export interface Keys {
  readonly body: readonly SlotKey[];
  readonly standardWebhooks: readonly SlotKey[];
}

interface SlotKey {
  readonly slot: SecretSlot;
  readonly key: KeyObject;
}

/** Verification under way: bytes go in as they arrive, the verdict comes at the end. */
export interface Verification {
  readonly update: (chunk: Buffer) => void;
  /** The secret that made the signature, or null where none of ours did. To be asked once. */
  readonly verdict: () => SecretSlot | null;
}

export type VerifiableSignature = BodySignature | StandardWebhookSignature;

/** Standard Webhooks leaves the tolerance open; all its reference libraries take five minutes, both ways. */
const toleranceSeconds = 300;

/** Makes the keys once, so that no request pays for it. */
export function makeKeys(secrets: Secrets): Keys {
  const texts: [SecretSlot, string][] = [["current", secrets.current.reveal()]];
  if (secrets.previous) texts.push(["previous", secrets.previous.reveal()]);
  return {
    body: texts.map(([slot, text]) => ({ slot, key: createSecretKey(Buffer.from(text)) })),
    standardWebhooks: texts.map(([slot, text]) => ({
      slot,
      key: createSecretKey(standardWebhooksKey(text)),
    })),
  };
}

/** Starts to verify a body that is still arriving against `signature`, with every key there is. */
export function startVerification(signature: VerifiableSignature, keys: Keys): Verification {
  const isStandard = signature.kind === "standard-webhooks";
  const hmacs = (isStandard ? keys.standardWebhooks : keys.body).map(({ slot, key }) => ({
    slot,
    hmac: createHmac("sha256", key),
  }));
  if (isStandard) feed(hmacs, `${signature.id}.${signature.timestamp}.`);
  return {
    update: (chunk) => feed(hmacs, chunk),
    verdict() {
      let matching: SecretSlot | null = null;
      for (const { slot, hmac } of hmacs) {
        if (isMatch(signature, hmac.digest())) matching ??= slot;
      }
      return matching;
    },
  };
}

/** True where a Standard Webhooks timestamp is within the tolerance of our clock; the other signatures have none. */
export function isFresh(signature: VerifiableSignature, nowMs: number): boolean {
  if (signature.kind === "body") return true;
  return Math.abs(nowMs / 1_000 - Number(signature.timestamp)) <= toleranceSeconds;
}

/**
 * What makes two deliveries the same one: the signed bytes. A Standard Webhooks timestamp is left out, since it is
 * that of the attempt, while the id stays the same when a delivery is sent again.
 *
 * @returns SHA-256 in hex
 */
export function deliveryDigest(signature: VerifiableSignature, body: Buffer): string {
  const hash = createHash("sha256");
  if (signature.kind === "standard-webhooks") hash.update(`${signature.id}.`);
  return hash.update(body).digest("hex");
}

function feed(hmacs: readonly { readonly hmac: Hmac }[], data: Buffer | string): void {
  for (const { hmac } of hmacs) hmac.update(data);
}

/** Compares with every digest sent, in constant time and without leaving early. */
function isMatch(signature: VerifiableSignature, expected: Buffer): boolean {
  let matches = 0;
  for (const digest of signature.digests) {
    if (digest.length === expected.length && timingSafeEqual(digest, expected)) matches += 1;
  }
  return signature.kind === "body" ? matches === signature.digests.length && matches > 0 : matches > 0;
}

/** Standard Webhooks 1.0.0: `whsec_` and the key in base64; any other secret is taken as it stands. */
function standardWebhooksKey(text: string): Buffer {
  return text.startsWith("whsec_") ? Buffer.from(text.slice("whsec_".length), "base64") : Buffer.from(text);
}
