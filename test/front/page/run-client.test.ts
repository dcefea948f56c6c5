import assert from "node:assert/strict";
import { createServer, IncomingMessage, type RequestListener, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { streamed } from "../../../src/front/page/api.ts";
import { connectRun } from "../../../src/front/page/run-client.ts";
import { listenAt } from "../../harness/listen.ts";
import { isProblem } from "../../harness/problems.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";
import { until } from "../../harness/until.ts";

const visit = { credential: "hps_x", address: "192.0.2.1", agent: "", hasLeft: () => false };
/** The streams that all visitors may have open at `run`. */
const mostStreams = 432;
/** What `run` accepts at its socket for the page (src/calls/sockets.ts). */
const mostConnections = 512;
const look = { method: "GET", path: "/projects" } as const;

test("hundreds of calls and streams at once stay below the connections of run", async (t) => {
  const { run, mostOpen } = await startRun(t, ({ url }, response) => {
    if (url === look.path) setImmediate(() => response.end("{}"));
    else response.write("a line\n");
  });
  const leaving = new AbortController();
  const calls = Array.from({ length: 500 }, () => run.call(visit, look));
  const opening = Array.from({ length: 500 }, () => run.open(visit, "/events", leaving.signal));
  const opened = await Promise.allSettled(opening);
  const refused = opened.filter((one) => one.status === "rejected").map(({ reason }) => reason);
  assert.equal(refused.length, 500 - mostStreams);
  assert.ok(refused.every(isProblem("run_unreachable")));
  assert.equal((await Promise.all(calls)).length, 500);
  assert(mostOpen() < mostConnections, `${mostOpen()} connections`);
  for (const one of opened) if (one.status === "fulfilled") one.value.on("error", () => {});
  leaving.abort();
  const again = () => run.open(visit, "/events", new AbortController().signal).catch(() => null);
  const stream = await until("room", again);
  stream.on("error", () => {}).destroy();
});

test("who leaves before run has answered holds no place, and has no call made", async (t) => {
  let calls = 0;
  const { run } = await startRun(t, (_, response) => {
    calls += 1;
    response.write("a line\n");
  });
  for (let count = 1; count <= mostStreams + 1; count += 1) {
    const answer = await streamed(run, visit, "/events");
    const left = new ServerResponse(new IncomingMessage(new Socket()));
    left.destroy();
    await (answer.kind === "stream" && answer.write(left));
    await assert.rejects(run.call({ ...visit, hasLeft: () => true }, look));
    assert.equal(calls, count);
  }
});

/** `run`, as far as the page sees it. */
async function startRun(t: TestContext, answer: RequestListener) {
  const socketPath = join(temporaryDirectory(t), "page.sock");
  let open = 0;
  let most = 0;
  const server = createServer({ requireHostHeader: false }, answer).on("connection", (socket) => {
    open += 1;
    most = Math.max(most, open);
    socket.on("close", () => {
      open -= 1;
    });
  });
  await listenAt(t, server, socketPath);
  return { run: connectRun(socketPath), mostOpen: () => most };
}
