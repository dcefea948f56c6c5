import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import { createHttpServer, type HandleRequest } from "../../src/platform/http-server.ts";
import { listenHere } from "../harness/listen.ts";
import { exchange } from "../harness/raw-http.ts";

const get = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

test("a fault is logged once; it is answered with 500, or cuts the answer that has begun", async (t) => {
  const { port, logged } = await serve(t, async (request, response) => {
    if (request.url === "/begun") response.writeHead(200, { "content-length": "100" }).write("the beginning");
    throw new Error("the disk is full");
  });
  const { replies } = await exchange(port, get);
  assert.deepEqual([replies[0]?.status, JSON.parse(replies[0]?.body ?? "").code], [500, "internal_error"]);
  const begun = await exchange(port, get.replace("/", "/begun"));
  assert.deepEqual([begun.replies.length, begun.isClosed], [0, true]);
  assert.deepEqual(
    logged.map(({ event }) => event),
    ["request.failed", "request.failed"],
  );
});

test("a client that leaves before its body is whole is no fault", async (t) => {
  const { promise: isOver, resolve: end } = Promise.withResolvers<void>();
  const { port, logged } = await serve(t, async (request) => {
    try {
      for await (const _ of request);
    } finally {
      end();
    }
  });
  const half = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf";
  await assert.rejects(exchange(port, half, { deadlineMs: 1_000 }));
  await isOver;
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
