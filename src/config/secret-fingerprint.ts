import { createHash } from "node:crypto";
import type { Secret } from "./secret.ts";

/**
 * Tells one secret from the next: two bytes of a hash, enough for that and too few to guess a secret by.
 *
 * @returns 4 hex digits
 */
export function secretFingerprint(secret: Secret): string {
  return createHash("sha256").update(`hotpush\0${secret.reveal()}`).digest("hex").slice(0, 4);
}
