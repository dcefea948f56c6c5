import assert from "node:assert/strict";
import { after, test } from "node:test";
import { type Delivery, githubDelivery, githubPush } from "../../harness/delivery.ts";
import { startReceiver } from "../../harness/receiver.ts";

const receiver = await startReceiver({ after });

const commit = "f".repeat(40);
const real = githubPush({ after: commit, mark: "x" }).body.toString();
const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
const documents: readonly [string, () => string | Buffer, number][] = [
  ["an array 1,000,000 levels deep", () => nested(1_000_000), 422],
  ["a push with 1,000,000 levels in a field", () => real.replace("{", `{"x":${nested(1_000_000)},`), 202],
  [
    "a push with ref twice, the last of which is main",
    () => real.replace("{", '{"ref":"refs/heads/other",'),
    202,
  ],
  [
    "a push with ref twice, only the first of which is main",
    () => `${real.slice(0, -1)},"ref":"refs/heads/other"}`,
    200,
  ],
  ["a push in the field __proto__", () => `{"__proto__":${real}}`, 422],
  [
    "an object with 100,000 integer-like keys",
    () => `{${Array.from({ length: 100_000 }, (_, index) => `"${index * 65_536}":0`).join(",")}}`,
    422,
  ],
  ["a number of a million digits", () => `{"ref":${"9".repeat(1_000_000)}}`, 422],
];

for (const [name, make, expected] of documents) {
  test(`${name} is answered with ${expected} before the host hangs up`, async () => {
    const delivery: Delivery = githubDelivery("push", make());
    const startMs = performance.now();
    const response = await fetch(`http://127.0.0.1:${receiver.port}/webhook`, {
      method: "POST",
      headers: delivery.headers,
      body: delivery.body as string,
    });
    assert.equal(response.status, expected, await response.text());
    assert(performance.now() - startMs < 10_000, "the host would have hung up");
    assert.deepEqual(receiver.faults, []);
  });
}
