import assert from "node:assert/strict";
import { chownSync, existsSync, readdirSync, statSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { operatorSocketPath } from "../../src/config/server.ts";
import { hotpush, type Target } from "../harness/hotpush.ts";
import { needs } from "../harness/requirements.ts";
import { startService } from "../harness/service.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

test("a dead service's socket is replaced, and closing removes the new one", async (t) => {
  const statePath = temporaryDirectory(t);
  const service = await startService(t, { statePath });
  await until("the socket", () => existsSync(operatorSocketPath(statePath)));
  await service.end("SIGKILL");
  const refused = await hotpush({ statePath }, "status");
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /was left by a service that is gone\. Start it/);
  const next = await service.again();
  await until("the next one answers", async () => (await answeringPort(next)) === next.port);
  assert.equal(await next.end(), 0);
  assert.equal(existsSync(operatorSocketPath(statePath)), false);
});

test("one process has the socket of its front in another user's directory too", needs("root"), async (t) => {
  const statePath = temporaryDirectory(t);
  chownSync(statePath, 65_534, 65_533);
  await startService(t, { statePath });
  const path = join(statePath, "front.sock");
  await until("the socket", () => existsSync(path));
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

test("a state directory with a path longer than a socket's address works", async (t) => {
  const statePath = join(temporaryDirectory(t), "a".repeat(120), "b".repeat(120));
  const service = await startService(t, { statePath });
  await until("the socket", () => existsSync(operatorSocketPath(statePath)));
  const { code, stdout } = await hotpush(service, "status");
  assert.deepEqual([code, stdout.split(" ")[0]], [0, "Hotpush"]);
});

test("only its user may use the socket, and 32 connections at once", async (t) => {
  const { statePath } = await startService(t);
  const path = operatorSocketPath(statePath);
  await until("the socket", () => existsSync(path));
  assert.equal(statSync(path).mode & 0o777, 0o600);
  let closed = 0;
  const sockets = Array.from({ length: 40 }, () =>
    connect(path)
      .on("error", () => {})
      .on("close", () => (closed += 1))
      .resume(),
  );
  await until("8 are closed", () => closed >= 8);
  for (const socket of sockets) socket.destroy();
});

test("the next leader answers commands, and leaves no second socket behind", async (t) => {
  const first = await startService(t);
  await until("the socket", () => existsSync(operatorSocketPath(first.statePath)));
  const second = await first.again();
  await second.log.waitFor(({ event }) => event === "runner.waiting");
  assert.equal(await answeringPort(first), first.port);
  assert.equal(await first.end(), 0);
  await until("the second one answers", async () => (await answeringPort(first)) === second.port);
  assert.ok(!readdirSync(first.statePath).includes(".control"));
});

/** The port of the service that answers a command, or null if none does. */
async function answeringPort(target: Target): Promise<number | null> {
  const { code, stdout } = await hotpush(target, "status", "--json");
  return code === 0 ? (JSON.parse(stdout) as { port: number }).port : null;
}
