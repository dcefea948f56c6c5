import { findSecrets, type SecretSources } from "./known-secrets.ts";
import { createMask, type Mask } from "./mask.ts";
import { isTooShort, leastMaskedBytes, maskedPartsOf } from "./maskable.ts";

/**
 * Makes a function that gives the mask for what a deploy script, or git in its repository, prints at the moment. A new
 * one is only built where the secrets have changed.
 */
export function createScriptMask(sources: SecretSources): () => Mask {
  let known: readonly string[] = [];
  let mask = createMask(known);
  return () => {
    const parts = findSecrets(sources).flatMap(({ value }) => maskedPartsOf(value));
    const isSame = parts.length === known.length && parts.every((part, index) => part === known[index]);
    if (!isSame) mask = createMask(parts);
    known = parts;
    return mask;
  };
}

/** A sentence for each secret that is known and too short for its place in output to be found. */
export function findUnmasked(sources: SecretSources): readonly string[] {
  const tooShort = findSecrets(sources).filter(({ value }) => isTooShort(value));
  return Array.from(
    new Set(tooShort.map(({ name }) => name)),
    (name) =>
      `The value of ${name} has fewer than ${leastMaskedBytes} characters, too few to be masked in what deploy.sh prints; make it longer if it is secret`,
  );
}
