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
const trickleMs = 1_000;
/** The flags of `npm start`. */
const asNpmStart = { NODE_OPTIONS: "--max-semi-space-size=4" };

/** Sends `start`, then a byte a second, until the service closes the connection. */
function trickle(port: number, start: string) {
  const startMs = performance.now();
  return new Promise<{ readonly reply: RawReply | undefined; readonly afterMs: number }>((resolve) => {
    let received = "";
    const socket = connect({ port, host: "127.0.0.1" });
    socket.write(start);
    const timer = start === "" ? undefined : setInterval(() => socket.write("a"), trickleMs);
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
async function useService(service: RunningService, isOver: () => boolean): Promise<number[]> {
  const latenciesMs: number[] = [];
  while (!isOver()) {
    const startMs = performance.now();
    const push = withHeader(githubPush({ ref: "refs/heads/develop" }), "connection", "close");
    assert.equal((await deliver(service.url, push)).status, 200);
    latenciesMs.push(performance.now() - startMs);
    assert.equal((await fetch(`${service.url}/health`, { headers: { connection: "close" } })).status, 200);
    await delay(10);
  }
  const main = withHeader(githubPush(), "connection", "close");
  assert.equal((await deliver(service.url, main)).status, 202);
  return latenciesMs.sort((one, other) => one - other);
}

function summary(latenciesMs: readonly number[]): string {
  const at = (share: number) => `${(latenciesMs[Math.floor(latenciesMs.length * share)] ?? 0).toFixed(1)} ms`;
  return `${latenciesMs.length} pushes, median ${at(0.5)}, p99 ${at(0.99)}, slowest ${at(0.9999)}`;
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
  t.diagnostic(`meanwhile ${summary(await using)}`);
  t.diagnostic(`peak ${Math.round(memoryOf(service.child.pid).peakBytes / 1024 ** 2)} MiB`);
});

test("500 badly signed bodies of 25 MB at once leave memory under 256 MB and real pushes unharmed", async (t) => {
  const service = await startService(t, { env: asNpmStart });
  await deliver(service.url, githubPush());
  const idle = memoryOf(service.child.pid);
  let isOver = false;
  const uploads = { port: service.port, clients: 500, bodyBytes: 25_000_000 };
  const counted = uploadAtOnce(t, uploads).finally(() => {
    isOver = true;
  });
  const latenciesMs = await useService(service, () => isOver);
  const counts = await counted;
  const { peakBytes } = memoryOf(service.child.pid);
  const mebibytes = (bytes: number) => `${Math.round(bytes / 1024 ** 2)} MiB`;
  t.diagnostic(`idle ${mebibytes(idle.residentBytes)}, peak ${mebibytes(peakBytes)}`);
  t.diagnostic(`uploads by status ${JSON.stringify(counts)}; meanwhile ${summary(latenciesMs)}`);
  assert(peakBytes < 256e6, `${peakBytes} bytes at most`);
  assert(Object.keys(counts).every((status) => ["401", "408", "503", "cut"].includes(status)));
  assert.equal(
    Object.values(counts).reduce((sum, count) => sum + count, 0),
    500,
  );
});
