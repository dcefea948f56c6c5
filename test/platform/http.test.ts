import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import { type TestContext, test } from "node:test";
import { sendHttp } from "../../src/platform/http.ts";
import { listenHere } from "../harness/listen.ts";

test("fails with ETIMEDOUT if the answer does not end in time", async (t) => {
  const url = await site(t, (_, response) => response.write("a beginning"));
  await assert.rejects(sendHttp(url, { timeoutMs: 100 }), {
    code: "ETIMEDOUT",
    message: "no answer within 0.1 s",
  });
});

test("cuts an endless answer at the limit", async (t) => {
  const url = await site(t, (_, response) => {
    const pour = () => {
      while (response.write("x".repeat(1_000)));
      response.once("drain", pour);
    };
    pour();
  });
  const { body } = await sendHttp(url, {}, 5_000);
  assert.equal(body.length, 5_000);
});

async function site(t: TestContext, listener: RequestListener): Promise<URL> {
  return new URL(`http://127.0.0.1:${await listenHere(t, createServer(listener))}/`);
}
