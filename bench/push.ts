import { readFileSync } from "node:fs";
import { type Delivery, githubDelivery } from "../test/harness/delivery.ts";

/**
 * GitHub's own example of a push to a branch, signed as GitHub signs it. A long commit message pads it to `bytes`.
 *
 * @param fields members of the payload to replace, such as `ref` and `after`
 */
export function pushOfSize(bytes: number, fields: Readonly<Record<string, unknown>> = {}): Delivery {
  const payload = { ...example(), ...fields };
  const message = { message: "" };
  const short = JSON.stringify({ ...payload, head_commit: message });
  message.message = "x".repeat(Math.max(0, bytes - Buffer.byteLength(short)));
  return githubDelivery("push", JSON.stringify({ ...payload, head_commit: message }));
}

/** A branch that no receiver of this bench deploys: the push is verified and read, and nothing runs. */
export const ignoredRef = "refs/heads/feature";

interface EventExamples {
  readonly name: string;
  readonly examples: readonly { readonly ref?: string }[];
}

const examplesUrl = import.meta.resolve("@octokit/webhooks-examples/api.github.com/index.json");
const examples = JSON.parse(readFileSync(new URL(examplesUrl), "utf8")) as readonly EventExamples[];

function example(): object {
  const pushes = examples.find(({ name }) => name === "push")?.examples ?? [];
  const found = pushes.find(({ ref }) => ref?.startsWith("refs/heads/"));
  if (!found) throw new Error("@octokit/webhooks-examples has no push to a branch any more");
  return found;
}
