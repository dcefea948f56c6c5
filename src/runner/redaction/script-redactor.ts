import { isTooShort, leastRedactedBytes, redactedPartsOf } from "../../redaction/redactable.ts";
import { createRedactor, type Redactor } from "../../redaction/redactor.ts";
import { findSecrets, type SecretSources } from "./known-secrets.ts";

/**
 * Makes a function that gives the redactor for what a deploy script, or git in its repository, prints at the moment. A new
 * one is only built where the secrets have changed.
 */
export function createScriptRedactor(sources: SecretSources): () => Redactor {
  let known: readonly string[] = [];
  let redactor = createRedactor(known);
  return () => {
    const parts = findSecrets(sources).flatMap(({ value }) => redactedPartsOf(value));
    const isSame = parts.length === known.length && parts.every((part, index) => part === known[index]);
    if (!isSame) redactor = createRedactor(parts);
    known = parts;
    return redactor;
  };
}

/** A sentence for each secret that is known and too short for its place in output to be found. */
export function findUnredacted(sources: SecretSources): readonly string[] {
  const tooShort = findSecrets(sources).filter(({ value }) => isTooShort(value));
  return Array.from(
    new Set(tooShort.map(({ name }) => name)),
    (name) =>
      `The value of ${name} has fewer than ${leastRedactedBytes} characters, too few to be redacted in what deploy.sh prints; make it longer if it is secret`,
  );
}
