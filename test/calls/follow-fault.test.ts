import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { pino } from "pino";
import { eventsIn } from "../../src/calls/events.ts";
import { claimNext, findDeployment } from "../../src/deployments/store.ts";
import { listenHere } from "../harness/listen.ts";
import { openDefault, pushOf, record } from "../harness/store.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

test("a database fault ends the stream of events, is logged, and costs nothing else", async (t) => {
  const statePath = temporaryDirectory(t);
  const store = openDefault(statePath);
  record(store, pushOf());
  store.transaction(() => claimNext(store));
  const logged: string[] = [];
  const log = pino({}, { write: (line: string) => logged.push(line) });
  const context = { store, events: new EventEmitter(), logStatePath: statePath, log };
  const deployment = findDeployment(store, 1);
  assert(deployment);
  const reply = eventsIn(context, deployment, { fromByte: 0, isFollowing: true });
  const server = createServer((_, response) => reply.write(response));
  const port = await listenHere(t, server);
  const response = await fetch(`http://127.0.0.1:${port}/`);
  const reader = response.body?.getReader();
  assert.match(Buffer.from((await reader?.read())?.value ?? []).toString(), /"state":"running"/);
  // As after a disk fault, if the database cannot be opened again.
  store.close();
  await assert.rejects(async () => {
    while (!(await reader?.read())?.done);
  });
  assert.match(logged.join(), /A deployment could not be followed/);
});
