import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import {
  closeServer,
  createHttpServer,
  createPublicServer,
  type HandleRequest,
} from "../../src/platform/http-server.ts";
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

test("a stop answers those whose connection the kernel has taken", async (t) => {
  const { server, port } = await serve(t, async (_, response) => {
    response.end("answered");
  });
  // All come at once, before the server accepts the first; and no turn is long, as busy as the machine may be.
  let nowMs = 0;
  t.mock.method(performance, "now", () => (nowMs += 0.01));
  const replies = Array.from({ length: 10 }, () => exchange(port, get));
  await closeServer(server, 5_000);
  const bodies = (await Promise.allSettled(replies)).map((one) =>
    one.status === "fulfilled" ? one.value.replies[0]?.body : one.reason.code,
  );
  assert.deepEqual(bodies, Array(10).fill("answered"));
});

test("connections whose answers nobody reads lock nobody out", async (t) => {
  const large = Buffer.alloc(16 * 1024 ** 2);
  const server = createPublicServer("webhook", {}, pino({ enabled: false }), async (request, response) => {
    for await (const _ of request);
    response.end(request.method === "POST" ? large : "");
  });
  server.maxConnections = 32;
  const port = await listenHere(t, server);
  const post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1";
  for (let count = 0; count < 64; count += 1) {
    const socket = connect({ port, host: "127.0.0.1" });
    socket.on("error", () => {}).write(post);
    await Promise.race([once(socket, "data"), once(socket, "close")]);
    socket.pause();
  }
  const { replies } = await exchange(port, get);
  assert.equal(replies[0]?.status, 200);
});

async function serve(t: TestContext, handle: HandleRequest) {
  const logged: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line: string) => logged.push(JSON.parse(line)) });
  const server = createHttpServer({}, log, handle);
  return { server, port: await listenHere(t, server), logged };
}
