import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { githubPush } from "../harness/delivery.ts";
import { badlySigned } from "../harness/flood.ts";
import { converse, onTheWire } from "../harness/raw-http.ts";
import { startService } from "../harness/service.ts";
import type { Scope } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

/** So many connections of git hosts fit beside the descriptors that the service reserves, and those of the page. */
const places = 128;
const openFiles = 128 + Math.ceil((places * 8) / 5);
/** A service with few places. */
const startSmall = (scope: Scope) =>
  startService(scope, { wrapper: ["/bin/sh", "-c", `ulimit -n ${openFiles}; exec "$0" "$@"`] });

/** Sooner, no time-out of the service ends a request. */
const shortestTimeoutMs = 4_000;
const pushesAtOnce = 5;
const allTaken = Array(pushesAtOnce).fill(202);

const health = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";
const head = health.slice(0, -2);
const upload = `${badlySigned(20_000)}{`;

/** What the connections of a flood send, and how many of them may come while a push has sent nothing of its head yet. */
const floods = [
  ["idle after a request", health, 90],
  ["silent from the start", "", 90],
  ["without the end of a head", head, 90],
  ["without the end of a body", upload, 40],
] as const;

for (const [what, text, mostNewer] of floods)
  test(`no push is cut by a flood of connections ${what}`, async (t) => {
    const { port } = await startSmall(t);
    await open(port, text, 2 * places);
    for (let round = 0; round < 10; round += 1)
      assert.deepEqual(await pushAmid(port, text, 0, mostNewer), allTaken);
    // Of bodies that have not come whole, the oldest is cut, whoever sends it.
    if (text === upload) return;
    assert.deepEqual(await pushAmid(port, text, -200, 5 * places), allTaken);
  });

test("128 idle connections that are kept open lock nobody out", async (t) => {
  const { port } = await startSmall(t);
  const idle = await open(port, health, 128, "data");
  await until("some are closed", () => idle.some(({ closed }) => closed));
  const isOpen = idle.map(({ closed }) => !closed);
  assert.equal(isOpen.lastIndexOf(false) + 1, isOpen.filter((open) => !open).length, "the oldest are closed");
  assert.deepEqual(await pushAmid(port, health, 0, 0), allTaken);
});

/** Opens connections one after the other, each when the one before it has connected, or is answered. */
async function open(port: number, text: string, count: number, event: "connect" | "data" = "connect") {
  const sockets: Socket[] = [];
  for (let number = 0; number < count; number += 1) {
    const socket = connect({ port, host: "127.0.0.1" });
    socket.on("error", () => {}).resume();
    socket.write(text);
    sockets.push(socket);
    await new Promise((resolve) => socket.once(event, resolve).once("close", resolve));
  }
  return sockets;
}

/**
 * Sends pushes on connections of their own. @returns the status of each, or "cut"
 *
 * @param sentBytes how much of each push is sent first; negative: all but so many bytes
 * @param newer how many connections are opened before the rest is sent
 */
function pushAmid(port: number, text: string, sentBytes: number, newer: number) {
  return until("pushes are sent before the service may time them out", async () => {
    const startMs = performance.now();
    const pushes = Array.from({ length: pushesAtOnce }, () => {
      const wire = onTheWire(githubPush());
      const socket = connect({ port, host: "127.0.0.1" });
      const answered = converse(socket, wire.slice(0, sentBytes), { replyCount: 1 });
      return { socket, answered, rest: wire.slice(sentBytes) };
    });
    await open(port, text, newer);
    for (const { socket, rest } of pushes) socket.write(rest);
    const answers = await Promise.all(pushes.map(({ answered }) => answered));
    const statuses = answers.map(({ replies }) => replies[0]?.status ?? ("cut" as const));
    return performance.now() - startMs < shortestTimeoutMs && statuses;
  });
}
