import { makeSecret } from "../../../src/config/secret.ts";
import type { BodySignature } from "../../../src/front/webhook/verify-signature.ts";
import {
  makeKeys,
  type SlotKeys,
  startVerification,
  type VerifiableSignature,
} from "../../../src/front/webhook/verify-signature.ts";

/** The keys of one secret, or of two. */
export function keysOf(current: string, previous: string | null = null): readonly SlotKeys[] {
  return makeKeys({
    current: makeSecret(current),
    previous: previous === null ? null : makeSecret(previous),
  });
}

/** What the verification of a body that came in these chunks says. */
export function verdict(
  signature: VerifiableSignature,
  keys: readonly SlotKeys[],
  ...chunks: readonly (string | Uint8Array)[]
) {
  const verification = startVerification(signature, keys);
  for (const chunk of chunks) verification.update(Buffer.from(chunk));
  return verification.verdict();
}

/** The signatures of a body, from hex. */
export function bodySignature(...hex: readonly string[]): BodySignature {
  return { kind: "body", digests: hex.map((digits) => Buffer.from(digits, "hex")) };
}

/** The same bytes but for one bit; `position` may be past the end. */
export function flipped(bytes: Uint8Array, position: number, bit: number): Buffer {
  const copy = Buffer.from(bytes);
  const index = position % copy.length;
  copy[index] = (copy[index] ?? 0) ^ (1 << bit);
  return copy;
}
