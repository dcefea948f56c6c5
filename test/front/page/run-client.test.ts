import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { connectRun } from "../../../src/front/page/run-client.ts";
import { listenAt } from "../../harness/listen.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";
import { until } from "../../harness/until.ts";

const visitOf = (name: string) => ({ credential: name, address: "192.0.2.1", agent: "" });
const visit = visitOf("hps_x");
/** The streams that all visitors may have open at `run`. */
const mostStreams = 432;
const never = new AbortController().signal;
/** What `run` accepts at its socket for the page (src/calls/server.ts). */
const mostConnections = 512;

test("hundreds of calls and streams at once stay below the connections of run", async (t) => {
  const { run, mostOpen } = await startRun(t, (_, response) => setImmediate(() => response.end("{}")));
  const calls = Array.from({ length: 500 }, () => run.call(visit, "GET", "/projects"));
  const streams = Array.from({ length: 1_000 }, async (_, index) => {
    const answer = await run.open(visitOf(`hps_${index % 50}`), "/deployments/1/events", never);
    assert(!("kind" in answer));
    answer.resume();
  });
  await Promise.all(streams);
  assert.deepEqual(new Set((await Promise.all(calls)).map(({ kind }) => kind)), new Set(["ok"]));
  assert(mostOpen() < mostConnections, `${mostOpen()} connections`);
});

test("readers that keep all streams open stop no call, and make room as they leave", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { run, mostOpen } = await startRun(t, ({ url }, response) => {
    if (url === "/projects") response.end("{}");
    else response.write("a line\n");
  });
  const leaving = new AbortController();
  const opening = Array.from({ length: 500 }, () => run.open(visit, "/logs", leaving.signal));
  await until("no more are opened", () => mostOpen() >= mostStreams);
  assert.equal((await run.call(visit, "GET", "/projects")).kind, "ok");
  t.mock.timers.tick(10_000);
  const answers = await Promise.all(opening);
  const refused = answers.filter((answer) => "kind" in answer);
  assert.equal(refused.length, 500 - mostStreams);
  assert.equal(refused[0]?.status, 503);
  for (const answer of answers) if (!("kind" in answer)) answer.on("error", () => {});
  leaving.abort();
  assert.equal("kind" in (await run.open(visit, "/logs", AbortSignal.timeout(5_000))), false);
});

/** `run`, as far as the page sees it. */
async function startRun(t: TestContext, answer: RequestListener) {
  const socketPath = join(temporaryDirectory(t), "page.sock");
  let [open, most] = [0, 0];
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
