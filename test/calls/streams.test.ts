import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { pino } from "pino";
import { eventsIn } from "../../src/calls/streams.ts";
import { claimNext } from "../../src/deployments/store.ts";
import { listenHere } from "../harness/listen.ts";
import { openDefault, pushOf, record } from "../harness/store.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

test("a database fault ends the stream of events, is logged, and costs nothing else", async (t) => {
  const statePath = temporaryDirectory(t);
  const store = openDefault(statePath);
  record(store, pushOf());
  const deployment = store.transaction(() => claimNext(store));
  assert(deployment);
  const logged: string[] = [];
  const log = pino({}, { write: (line: string) => logged.push(line) });
  const context = { store, statePath, events: new EventEmitter(), log };
  const reply = eventsIn(context, deployment, { from: 0, isFollowing: true, format: "ndjson" });
  const port = await listenHere(
    t,
    createServer((_, response) => reply.write(response)),
  );
  const { body } = await fetch(`http://127.0.0.1:${port}/`);
  const pieces = (body as unknown as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  assert.match(String(Buffer.from((await pieces.next()).value)), /^{"event":"deployment".*"running"/);
  // As after a disk fault, if the database cannot be opened again.
  store.close();
  await assert.rejects(pieces.next());
  assert.match(logged.join(), /"event":"control.failed"/);
});
