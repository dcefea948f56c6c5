import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { deliver, githubPush, withHeader } from "../harness/delivery.ts";
import { badlySigned, startFlood, uploadAtOnce } from "../harness/flood.ts";
import { assertProblem } from "../harness/problems.ts";
import { memoryOf } from "../harness/processes.ts";
import { converse } from "../harness/raw-http.ts";
import { type RunningService, startService } from "../harness/service.ts";

const clients = 3_000;
/** The limit for a flood of `clients`: about 15 KiB per connection, and 96 MiB for all bodies. */
const mostMoreBytes = 128 * 1024 ** 2;
/** Git hosts hang up after this time. */
const senderPatienceMs = 10_000;
/** With the flags of `npm start`. */
const lean = { env: { NODE_OPTIONS: "--max-semi-space-size=2", MALLOC_ARENA_MAX: "1" } };

/** Sends a push on a connection of its own. @returns how long it took */
async function push({ url }: RunningService, padding = ""): Promise<number> {
  const startMs = performance.now();
  const { status } = await deliver(url, withHeader(githubPush({ padding }), "connection", "close"));
  assert.equal(status, 202, `a push with ${padding.length} bytes more`);
  return performance.now() - startMs;
}

/** Sends pushes and requests to /health, each on a connection of its own, until `isOver`. @returns the times of the pushes */
async function useUntil(isOver: () => boolean, service: RunningService): Promise<number[]> {
  const tookMs: number[] = [];
  while (!isOver()) {
    tookMs.push(await push(service));
    assert.equal((await fetch(`${service.url}/health`, { headers: { connection: "close" } })).status, 200);
    await delay(10);
  }
  return tookMs;
}

/** The same until a flood has ended. */
async function useDuring<Result>(flood: Promise<Result>, service: RunningService): Promise<Result> {
  let isOver = false;
  const ended = flood.finally(() => {
    isOver = true;
  });
  await useUntil(() => isOver, service);
  return await ended;
}

const large = badlySigned(20_000_000);
const small = badlySigned(1_000_000);

for (const [what, flood] of [
  ["announce a large body and send nothing of it", { text: large }],
  ["send a byte of a large body each second", { text: `${large} `, dripMs: 1_000 }],
  [
    "stop after 64 KiB of a large body, 250 a second",
    { text: large + " ".repeat(65_536), clients: 1_500, openEveryMs: 4 },
  ],
  ["stop after 60 kB of a small body", { text: small + " ".repeat(60_000) }],
] as const) {
  test(`pushes get in, and memory is bounded, while thousands ${what}`, async (t) => {
    const service = await startService(t, lean);
    await push(service);
    const { residentBytes } = memoryOf(service.child.pid);
    const opened = await startFlood(t, { clients, ...flood, port: service.port });
    // Until the first connections have been replaced: by then the flood holds as much as it can.
    const first = opened();
    const tookMs = await useUntil(() => opened() >= first + 100, service);
    const { peakBytes } = memoryOf(service.child.pid);
    const moreBytes = peakBytes - residentBytes;
    t.diagnostic(`${moreBytes >> 20} MiB more`);
    assert(Math.max(...tookMs) < senderPatienceMs, `${tookMs} ms`);
    for (let count = 0; count < 2; count += 1) await push(service, "x".repeat(25_000_000));
    assert(moreBytes < mostMoreBytes, `${moreBytes} bytes more`);
  });
}

/** Sends `start`, then a byte a second, until the service closes the connection. */
async function trickle(port: number, start: string) {
  const startMs = performance.now();
  const socket = connect({ port, host: "127.0.0.1" });
  const timer = setInterval(() => start && socket.write("a"), 1_000);
  socket.on("end", () => clearInterval(timer));
  const { replies } = await converse(socket, start, { deadlineMs: 120_000 });
  clearInterval(timer);
  return { reply: replies[0], afterMs: performance.now() - startMs };
}

const slowHead = "POST /webhook HTTP/1.1\r\nHost: a\r\nX-Slow: ";
const slowBody = `${badlySigned(20_000)}{`;

test("a thousand slow and silent connections are closed with 408 while pushes and /health pass", async (t) => {
  const service = await startService(t);
  const kinds = [[slowHead, 4_500] as const, [slowBody, 9_000] as const, ["", 4_500] as const];
  const closings = Array.from({ length: 1_000 }, async (_, index) => {
    const [start, leastMs] = kinds[index % kinds.length] ?? ["", 0];
    const { afterMs, reply } = await trickle(service.port, start);
    assert(afterMs > leastMs, `${start}: closed after ${afterMs} ms with ${reply?.status}`);
    assertProblem(reply as never, "request_timeout");
  });
  await useDuring(Promise.all(closings), service);
  await push(service);
});

test("500 badly signed bodies of 25 MB at once leave memory under 256 MB and real pushes unharmed", async (t) => {
  const service = await startService(t, lean);
  const uploads = { port: service.port, clients: 500, bodyBytes: 25_000_000 };
  const counts = await useDuring(uploadAtOnce(t, uploads), service);
  await push(service);
  const { peakBytes } = memoryOf(service.child.pid);
  t.diagnostic(`peak ${peakBytes >> 20} MiB, uploads by status ${JSON.stringify(counts)}`);
  assert(peakBytes < 256e6, `${peakBytes} bytes at most`);
  assert(Object.keys(counts).every((status) => ["401", "408", "503", "cut"].includes(status)));
  const answered = Object.values(counts).reduce((sum, count) => sum + count, 0);
  assert.equal(answered, uploads.clients);
});
