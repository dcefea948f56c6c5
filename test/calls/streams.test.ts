import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { createServer } from "node:http";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import { parseLines } from "../../src/calls/client.ts";
import type { ControlEvent } from "../../src/calls/shapes.ts";
import { eventsIn } from "../../src/calls/streams.ts";
import { claimNext, noteStep } from "../../src/deployments/store.ts";
import { logPath, openLog } from "../../src/runner/log-file.ts";
import { listenHere } from "../harness/listen.ts";
import { openDefault, pushOf, record } from "../harness/store.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

test("a database fault ends the stream of events, is logged, and costs nothing else", async (t) => {
  const { events, store, logged } = await follow(t);
  const first = (await events.next()).value;
  assert.equal(first?.event === "deployment" && first.deployment.state, "running");
  // As after a disk fault, if the database cannot be opened again.
  store.close();
  await assert.rejects(Array.fromAsync(events));
  assert.match(logged.join(), /"event":"control.failed"/);
});

test("a step that begins while the log is sent stands between its lines", async (t) => {
  const { events, store, deployment, bus, log, statePath } = await follow(t, (output) => {
    // More than a connection holds, so that the reader decides when it is sent.
    for (let count = 0; count < 30_000; count += 1) output.add(Buffer.from("a line of the log so far"));
  });
  const output = openLog(logPath(statePath, 1));
  const print = (text: string) => {
    output.add(Buffer.from(text));
    output.flush(Date.now());
    bus.emit("1");
  };
  assert.equal((await events.next()).value?.event, "deployment");
  for (const name of ["Build", "Check"]) {
    print(`before ${name}`);
    print(`==> ${name}`);
    noteStep(store, deployment, name, log);
    bus.emit("1");
  }
  const seen: string[] = [];
  for await (const event of events) {
    if (event.event === "line" && !event.line.includes("so far")) seen.push(event.line);
    if (event.event === "step")
      seen.push(`${event.step.name} ${event.step.durationMs === null ? "begins" : "is over"}`);
    if (seen.at(-1) === "==> Check") break;
  }
  store.close();
  assert.deepEqual(seen, [
    ...["before Build", "Build begins", "==> Build"],
    ...["before Check", "Build is over", "Check begins", "==> Check"],
  ]);
});

/** Follows a deployment that runs, over a connection. */
async function follow(t: TestContext, print: (output: ReturnType<typeof openLog>) => void = () => {}) {
  const statePath = temporaryDirectory(t);
  const store = openDefault(statePath);
  record(store, pushOf());
  const deployment = store.transaction(() => claimNext(store));
  assert(deployment);
  const output = openLog(logPath(statePath, 1));
  print(output);
  output.flush(Date.now());
  const logged: string[] = [];
  const log = pino({}, { write: (line: string) => logged.push(line) });
  const bus = new EventEmitter();
  const context = { store, statePath, events: bus, log };
  const reply = eventsIn(context, deployment, { fromByte: 0, isFollowing: true });
  const port = await listenHere(
    t,
    createServer((_, response) => reply.write(response)),
  );
  const { body } = await fetch(`http://127.0.0.1:${port}/`);
  assert(body);
  const events = parseLines<ControlEvent>(body as unknown as AsyncIterable<Buffer>);
  return { events, store, deployment, bus, log, logged, statePath };
}
