import { randomBytes } from "node:crypto";
import { makeSecret } from "#config/secret";
import type { Webhook } from "./webhook.ts";

const prefix = "/webhook/";

/**
 * Finds the webhook of a project by the path /webhook/<name>. A name that no project has leads to a webhook whose secrets
 * nobody knows, and each webhook verifies with two keys: so neither an answer nor its time shows which projects there are.
 *
 * @param find gives the same object for a project as long as its settings are the same
 */
export function namedWebhooks(find: (project: string) => Webhook | null): (path: string) => Webhook | null {
  const unknown = unknownWebhook();
  const padded = new WeakMap<Webhook, Webhook>();

  function withTwoKeys(webhook: Webhook): Webhook {
    if (webhook.secrets.previous !== null) return webhook;
    const known = padded.get(webhook);
    if (known) return known;
    const secrets = { ...webhook.secrets, previous: unknown.secrets.previous };
    const made = { ...webhook, secrets };
    padded.set(webhook, made);
    return made;
  }

  return (path) => {
    if (!path.startsWith(prefix)) return null;
    const webhook = find(path.slice(prefix.length));
    return webhook === null ? unknown : withTwoKeys(webhook);
  };
}

function unknownWebhook(): Webhook {
  const secret = () => makeSecret(randomBytes(32).toString("hex"));
  const never = async () => {
    throw new Error("A delivery was verified with a secret that nobody knows.");
  };
  return {
    secrets: { current: secret(), previous: secret() },
    ...{ repository: null, refs: [], record: never, dryRun: never },
  };
}
