import { findSecrets, type SecretSources } from "./known-secrets.ts";
import { createMask, type Mask } from "./mask.ts";
import { isTooShort, leastMaskedBytes, maskedPartsOf } from "./maskable.ts";

/** The mask for what a deploy script, or git in its repository, prints. */
export async function createScriptMask(sources: SecretSources): Promise<Mask> {
  const secrets = await findSecrets(sources);
  return createMask(secrets.flatMap(({ value }) => maskedPartsOf(value)));
}

/** A sentence for each secret that is known and too short for its place in output to be found. */
export async function findUnmasked(sources: SecretSources): Promise<readonly string[]> {
  const secrets = await findSecrets(sources);
  const names = new Set(secrets.filter(({ value }) => isTooShort(value)).map(({ name }) => name));
  return Array.from(
    names,
    (name) =>
      `The value of ${name} has fewer than ${leastMaskedBytes} characters, too few to be masked in what deploy.sh prints; make it longer if it is secret`,
  );
}
