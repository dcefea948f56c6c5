import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { deliver, githubPush, randomCommit } from "../../harness/delivery.ts";
import { converse, onTheWire } from "../../harness/raw-http.ts";
import { findLost, readDeployments } from "../../harness/records.ts";
import { startSenders } from "../../harness/senders.ts";
import { letGo, startService, waitingScript } from "../../harness/service.ts";
import { until } from "../../harness/until.ts";

test("while a service that is to stop sees its deployment off, pushes are still recorded, and /health says 503", async (t) => {
  const service = await startService(t, { script: waitingScript, env: { SHUTDOWN_GRACE: "20s" } });
  await deliver(service.url, githubPush());
  const ended = service.end("SIGTERM");
  await service.log.waitFor(({ event }) => event === "service.stopping");
  const { status, headers } = await deliver(service.url, githubPush({ after: randomCommit() }));
  assert.equal(status, 202);
  assert.equal(headers.get("connection"), "close");
  assert.equal((await fetch(`${service.url}/health`)).status, 503);
  letGo(service.repoPath);
  assert.equal(await ended, 0);
  assert.deepEqual(
    readDeployments(service.statePath).map(({ state }) => state),
    ["succeeded", "queued"],
  );
});

test("a half-received push is still recorded when the service stops, even if nothing else is left to do", async (t) => {
  const service = await startService(t);
  const socket = connect({ port: service.port, host: "127.0.0.1" });
  await once(socket, "connect");
  const wire = onTheWire(githubPush());
  const half = wire.length / 2;
  // The answer to the first says that the half has arrived too.
  socket.write(`GET /health HTTP/1.1\r\nHost: a\r\n\r\n${wire.slice(0, half)}`);
  await once(socket, "data");
  const ended = service.end("SIGTERM");
  await service.log.waitFor(({ event }) => event === "service.stopping");
  const { replies } = await converse(socket, wire.slice(half));
  assert.equal(replies[0]?.status, 202);
  assert.equal(await ended, 0);
  assert.equal(readDeployments(service.statePath)[0]?.state, "queued");
});

test("no accepted push is lost when the service stops under load", async (t) => {
  const service = await startService(t);
  const load = startSenders(8);
  // Even if the test fails: nothing else would stop the senders.
  t.after(load.stop);
  load.aim(service.url);
  await until("50 pushes are accepted", () => load.accepted.size >= 50);
  assert.equal(await service.end("SIGTERM"), 0);
  await load.stop();
  assert.deepEqual(
    [...load.answers.keys()].filter((status) => status !== 202 && status !== 200),
    [],
  );
  const stored = [...load.stored].map((digest) => [digest, 0] as const);
  assert.deepEqual(
    findLost(service.statePath, [...load.accepted, ...stored]),
    [],
    "accepted pushes were lost",
  );
});
