import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { checkLimits, pollUntilGood } from "../../../src/rollout/proxy/check.ts";

const limits = { ...checkLimits, pollMs: 5, timeoutMs: 2_000, answerMs: 200 };

/** Answers with each of `statuses` in turn, then with the last for ever. */
async function site(t: TestContext, statuses: readonly number[]): Promise<string> {
  const rest = [...statuses];
  const server = createServer((_, response) => {
    const status = (rest.length > 1 ? rest.shift() : rest[0]) ?? 200;
    response.writeHead(status).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

test("three good answers in a row are good", async (t) => {
  assert.deepEqual(await pollUntilGood(await site(t, [200]), limits), { kind: "good" });
});

test("a bad answer in between starts the count again", async (t) => {
  assert.deepEqual(await pollUntilGood(await site(t, [200, 503, 200, 200, 503, 200]), limits), {
    kind: "good",
  });
});

test("five bad answers in a row fail the check, and the last is reported", async (t) => {
  assert.deepEqual(await pollUntilGood(await site(t, [500]), limits), {
    kind: "bad",
    lastAnswer: "status 500",
  });
});

test("a site that does not listen is bad", async (t) => {
  const url = await site(t, [200]);
  const { kind, ...told } = await pollUntilGood(url.replace(/\d+\/$/, "1/"), limits);
  assert.equal(kind, "bad");
  assert.match(JSON.stringify(told), /ECONNREFUSED|bad port/);
});
