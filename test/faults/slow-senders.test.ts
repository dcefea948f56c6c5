import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { deliver, githubPush, withHeader } from "../harness/delivery.ts";
import { badlySigned, uploadAtOnce } from "../harness/flood.ts";
import { assertProblem } from "../harness/problems.ts";
import { memoryOf } from "../harness/processes.ts";
import { parseReplies, type RawReply } from "../harness/raw-http.ts";
import { type RunningService, startService } from "../harness/service.ts";

const connectionCount = 1_000;

/** Sends `start`, then a byte a second, until the service closes the connection. */
function trickle(port: number, start: string) {
  const startMs = performance.now();
  return new Promise<{ readonly reply: RawReply | undefined; readonly afterMs: number }>((resolve) => {
    let received = "";
    const socket = connect({ port, host: "127.0.0.1" });
    socket.write(start);
    const timer = start === "" ? undefined : setInterval(() => socket.write("a"), 1_000);
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
    });
    socket.on("end", () => clearInterval(timer));
    socket.on("error", () => {});
    socket.on("close", () => {
      clearInterval(timer);
      resolve({ reply: parseReplies(received).replies[0], afterMs: performance.now() - startMs });
    });
  });
}

/** Sends pushes and requests to /health, each on its own connection, until `isOver`. All must succeed. */
async function useService(service: RunningService, isOver: () => boolean): Promise<void> {
  const push = (ref?: string) =>
    deliver(service.url, withHeader(githubPush(ref ? { ref } : {}), "connection", "close"));
  while (!isOver()) {
    assert.equal((await push("refs/heads/develop")).status, 200);
    assert.equal((await fetch(`${service.url}/health`, { headers: { connection: "close" } })).status, 200);
    await delay(10);
  }
  assert.equal((await push()).status, 202);
}

const slowHead = "POST /webhook HTTP/1.1\r\nHost: a\r\nX-Slow: ";
const slowBody = `${badlySigned(20_000)}{`;

test("a thousand slow and silent connections are closed with 408 while pushes and /health pass", async (t) => {
  const service = await startService(t);
  const kinds = [[slowHead, 4_500] as const, [slowBody, 9_000] as const, ["", 4_500] as const];
  let isOver = false;
  const using = useService(service, () => isOver);
  const closings = Array.from({ length: connectionCount }, async (_, index) => {
    const [start, leastMs] = kinds[index % kinds.length] ?? ["", 0];
    const { afterMs, reply } = await trickle(service.port, start);
    assert(afterMs > leastMs, `${start}: closed after ${afterMs} ms with ${reply?.status}`);
    assertProblem(reply as never, "request_timeout");
  });
  await Promise.all(closings);
  isOver = true;
  await using;
});

test("500 badly signed bodies of 25 MB at once leave memory under 256 MB and real pushes unharmed", async (t) => {
  // The flags of `npm start`.
  const service = await startService(t, { env: { NODE_OPTIONS: "--max-semi-space-size=4" } });
  let isOver = false;
  const uploads = { port: service.port, clients: 500, bodyBytes: 25_000_000 };
  const counted = uploadAtOnce(t, uploads).finally(() => {
    isOver = true;
  });
  await useService(service, () => isOver);
  const counts = await counted;
  const { peakBytes } = memoryOf(service.child.pid);
  t.diagnostic(`peak ${peakBytes >> 20} MiB, uploads by status ${JSON.stringify(counts)}`);
  assert(peakBytes < 256e6, `${peakBytes} bytes at most`);
  assert(Object.keys(counts).every((status) => ["401", "408", "503", "cut"].includes(status)));
  const answered = Object.values(counts).reduce((sum, count) => sum + count, 0);
  assert.equal(answered, uploads.clients);
});
