import assert from "node:assert/strict";
import { after, test } from "node:test";
import { type Delivery, githubDelivery, githubPush } from "../../harness/delivery.ts";
import { exchange, onTheWire } from "../../harness/raw-http.ts";
import { startReceiver } from "../../harness/receiver.ts";

const receiver = await startReceiver({ after });

const commit = "f".repeat(40);
const real = githubPush({ after: commit, mark: "x" }).body.toString();
const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
const documents: readonly [string, () => string | Buffer, number][] = [
  ["an array 100 levels deep", () => nested(100), 422],
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
  ["a push in the field constructor.prototype", () => `{"constructor":{"prototype":${real}}}`, 422],
  ["a push behind a byte order mark", () => `\ufeff${real}`, 400],
  [
    "a push with bad UTF-8 behind it",
    () => Buffer.concat([Buffer.from(real), Buffer.from([0xc3, 0x28])]),
    400,
  ],
  [
    "overlong UTF-8 in a string",
    () => Buffer.concat([Buffer.from('{"ref":"'), Buffer.from([0xc0, 0xaf]), Buffer.from('"}')]),
    400,
  ],
  ["a push with half a surrogate", () => real.replace("octo/app", "\\ud800"), 202],
  [
    "an object with a million integer-like keys",
    () => `{${Array.from({ length: 1_000_000 }, (_, index) => `"${index * 65_536}":0`).join(",")}}`,
    422,
  ],
  ["a number of a million digits", () => `{"ref":${"9".repeat(1_000_000)}}`, 422],
  ["nothing but white space", () => " ".repeat(10_000), 400],
  ["nothing but NUL bytes", () => "\0".repeat(100), 400],
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

test("a signature header of any length and any characters is refused with 401", async () => {
  const { headers, body } = githubPush();
  for (const length of [0, 1, 6, 7, 63, 64, 65, 70, 71, 72, 100, 1_000, 10_000]) {
    for (const unit of ["a", "\xe9", "=", "0"]) {
      for (const text of [unit.repeat(length), `sha256=${unit.repeat(length)}`]) {
        const wire = onTheWire({ headers: { ...headers, "x-hub-signature-256": text }, body });
        const { replies } = await exchange(receiver.port, Buffer.from(wire, "latin1"), { replyCount: 1 });
        assert.equal(replies[0]?.status, 401, text.slice(0, 80));
      }
    }
  }
});
