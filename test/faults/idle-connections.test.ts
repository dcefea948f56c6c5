import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { badlySigned, startFlood } from "../harness/flood.ts";
import { exchange, onTheWire, parseReplies } from "../harness/raw-http.ts";
import { type RunningService, startService } from "../harness/service.ts";
import type { Scope } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

/** Few enough descriptors for only 128 connections. */
const descriptors = 256;
/** Soon after this time, the service closes a request that is not whole. */
const longestRequestMs = 9_000;

function startSmall(scope: Scope): Promise<RunningService> {
  return startService(scope, {
    wrapper: ["/bin/sh", "-c", `ulimit -n ${descriptors}; exec "$0" "$@"`],
  });
}

/** 2,000 connections a second: each stays for at least 50 ms, in which a push must have sent its head. */
function flood(scope: Scope, port: number, text: string) {
  const options = { port, text, clients: 2 * descriptors, openEveryMs: 0.5, reopenMs: 50 };
  return startFlood(scope, options, 3 * descriptors);
}

/**
 * Sends a push, again if its connection is cut: a sender, or a service, that has no processor for longer than 50 ms loses it.
 * @returns how often it was cut
 */
async function push({ url }: RunningService): Promise<number> {
  const { headers, body } = githubPush();
  const delivery = { headers: { ...headers, connection: "close" }, body };
  let tries = 0;
  const send = () => deliver(url, delivery).catch(() => null);
  const { status } = await until("a push gets in", () => {
    tries += 1;
    return send();
  });
  // One that had come whole would be a duplicate now.
  assert.equal(status, 202);
  return tries - 1;
}

const health = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";
const head = health.slice(0, -2);
const upload = `${badlySigned(20_000)}{`;

const floods = [
  ["idle after a request", health],
  ["silent from the start", ""],
  ["without the end of a head", head],
  ["without the end of a body", upload],
] as const;

for (const [what, start] of floods) {
  test(`pushes get in through a flood of connections ${what}`, async (t) => {
    const service = await startSmall(t);
    const { opened } = await flood(t, service.port, start);
    let cuts = 0;
    for (let count = 0; count < 50; count += 1) cuts += await push(service);
    t.diagnostic(`${opened()} connections, ${cuts} cuts`);
    assert.ok(cuts <= 10, `50 pushes were cut ${cuts} times`);
  });
}

test("128 idle connections that are kept open lock nobody out", async (t) => {
  const service = await startSmall(t);
  const idle: Socket[] = [];
  t.after(() => idle.map((socket) => socket.destroy()));
  for (let count = 0; count < 128; count += 1) {
    const socket = connect({ port: service.port, host: "127.0.0.1" });
    socket.on("error", () => {});
    socket.write(health);
    await once(socket, "data");
    idle.push(socket);
  }
  await until("some are closed", () => idle.some(({ readyState }) => readyState !== "open"));
  const isOpen = idle.map(({ readyState }) => readyState === "open");
  assert.equal(isOpen.lastIndexOf(false) + 1, isOpen.filter((open) => !open).length, "the oldest are closed");
  assert.equal(await push(service), 0);
});

for (const [what, start] of floods.slice(0, 3)) {
  test(`no push in flight is cut by connections ${what}`, async (t) => {
    const service = await startSmall(t);
    const startMs = performance.now();
    const slow = Array.from({ length: 20 }, () => startPush(service.port));
    await exchange(service.port, health, { replyCount: 1 });
    const { opened } = await flood(t, service.port, start);
    await until("each place was taken ten times", () => opened() > 5 * descriptors);
    for (const { socket, rest } of slow) socket.write(rest);
    if (performance.now() - startMs > longestRequestMs)
      return t.diagnostic("This machine is too busy to tell.");
    await until("all are answered", () => slow.every(({ status }) => status() !== undefined));
    assert.deepEqual(new Set(slow.map(({ status }) => status())), new Set([202]));
    for (const { socket } of slow) socket.destroy();
  });
}

/** Sends a push without its last bytes. */
function startPush(port: number) {
  const wire = onTheWire(githubPush());
  const socket = connect({ port, host: "127.0.0.1" });
  let received = "";
  socket.on("data", (chunk) => {
    received += chunk;
  });
  socket.write(wire.slice(0, -200));
  return { socket, rest: wire.slice(-200), status: () => parseReplies(received).replies[0]?.status };
}
