import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { Writable } from "node:stream";
import { test } from "node:test";
import { pino } from "pino";
import { deploymentJson } from "../../src/calls/shapes.ts";
import { eventStream, eventsIn } from "../../src/calls/streams.ts";
import { claimNext } from "../../src/deployments/store.ts";
import { listenHere } from "../harness/listen.ts";
import { openDefault, pushOf, record } from "../harness/store.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

test("a database fault ends the stream of events, is logged, and costs nothing else", async (t) => {
  const statePath = temporaryDirectory(t);
  const store = openDefault(statePath);
  record(store, pushOf());
  const deployment = store.transaction(() => claimNext(store));
  assert(deployment);
  const logged: string[] = [];
  const log = pino({}, { write: (line: string) => logged.push(line) });
  const context = { store, statePath, events: new EventEmitter(), log, toJson: deploymentJson };
  const reply = eventsIn(context, deployment.id, { from: 0, isFollowing: true });
  const port = await listenHere(
    t,
    createServer((_, response) => reply.write(response)),
  );
  const { body } = await fetch(`http://127.0.0.1:${port}/`);
  const pieces = (body as unknown as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  assert.match(String(Buffer.from((await pieces.next()).value)), /^data: {"event":"deployment".*"running"/);
  // As after a disk fault, if the database cannot be opened again.
  store.close();
  await assert.rejects(pieces.next());
  assert.match(logged.join(), /"event":"control.failed"/);
});

test("a reader that takes long to read the end gets it whole", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const reading = Promise.withResolvers<void>();
  let text = "";
  const response = new Writable({
    write(chunk, _encoding, done) {
      text += chunk;
      reading.promise.then(() => done());
    },
  });
  const stream = eventStream(pino({ level: "silent" }), async function* (textOf) {
    yield textOf({ event: "last" });
  });
  const written = stream.write(response as unknown as ServerResponse);
  await until("the end was written", () => response.writableEnded);
  t.mock.timers.tick(15_000);
  reading.resolve();
  await written;
  assert.deepEqual([text, response.writableFinished], ['data: {"event":"last"}\n\n', true]);
});
