import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import { createHttpServer, type HandleRequest } from "../../src/platform/http-server.ts";
import { listenHere } from "../harness/listen.ts";
import { exchange } from "../harness/raw-http.ts";
import { until } from "../harness/until.ts";

const get = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

test("a fault before the answer is logged once and answered with 500", async (t) => {
  const { port, logged } = await serve(t, () => {
    throw new Error("at once");
  });
  const { replies } = await exchange(port, get);
  assert.equal(replies[0]?.status, 500);
  assert.equal(JSON.parse(replies[0]?.body ?? "").code, "internal_error");
  assert.deepEqual(
    logged.map(({ event }) => event),
    ["request.failed"],
  );
});

test("a fault in the middle of an answer cuts its connection", async (t) => {
  const { port, logged } = await serve(t, async (_, response) => {
    response.writeHead(200, { "content-length": "100" }).write("the beginning");
    throw new Error("in the middle");
  });
  const { replies, isClosed } = await exchange(port, get);
  assert.deepEqual([replies.length, isClosed, logged.length], [0, true, 1]);
});

test("a client that leaves before its body is whole is no fault", async (t) => {
  let isOver = false;
  const { port, logged } = await serve(t, async (request) => {
    try {
      for await (const _ of request);
    } finally {
      isOver = true;
    }
  });
  const left = exchange(port, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf", {
    deadlineMs: 1_000,
  });
  await assert.rejects(left);
  await until("the handler has ended", () => isOver);
  assert.deepEqual(logged, []);
});

test("a flood of faults is logged in few lines", async (t) => {
  const { port, logged } = await serve(t, () => Promise.reject(new Error("the disk is full")));
  for (let count = 0; count < 100; count += 1) await exchange(port, get);
  assert.equal(logged.length, 20);
});

async function serve(t: TestContext, handle: HandleRequest) {
  const logged: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line: string) => logged.push(JSON.parse(line)) });
  return { port: await listenHere(t, createHttpServer({}, log, handle)), logged };
}
