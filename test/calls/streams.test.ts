import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { createServer, request, type ServerResponse } from "node:http";
import { join } from "node:path";
import { Writable } from "node:stream";
import { test } from "node:test";
import { pino } from "pino";
import { makeCredential } from "../../src/access/visitors.ts";
import type { ServerContext } from "../../src/calls/context.ts";
import { openSocket } from "../../src/calls/server.ts";
import { eventStream, eventsIn } from "../../src/calls/streams.ts";
import { claimNext } from "../../src/deployments/store.ts";
import { startFakeEngine } from "../harness/fake-engine.ts";
import { listenHere } from "../harness/listen.ts";
import { openDefault, pushOf, record, temporaryStore } from "../harness/store.ts";
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
  const stream = eventStream("sse", pino({ level: "silent" }), async function* (textOf) {
    yield textOf({ event: "last" });
  });
  const written = stream.write(response as unknown as ServerResponse);
  await until("the end was written", () => response.writableEnded);
  t.mock.timers.tick(15_000);
  reading.resolve();
  await written;
  assert.deepEqual([text, response.writableFinished], ['data: {"event":"last"}\n\n', true]);
});

test("a reader that leaves before the answer begins leaves nothing that looks at its right for ever", async (t) => {
  const store = temporaryStore(t);
  const { secret } = makeCredential(store, "token", { name: "Ann", role: "operator" }, Date.now());
  let looks = 0;
  const get: typeof store.get = (sql, ...values) => {
    if (sql.includes("FROM credentials")) looks += 1;
    return store.get(sql, ...values);
  };
  const directory = temporaryDirectory(t);
  const { containers, env } = await startFakeEngine(t, directory);
  containers.push({ id: "aaa1", service: "web", number: 1 });
  const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
  const project = {
    name: "default",
    settings: { repoPath: directory },
    script: () => ({
      environment: env,
      redactor: () => ({ text: String, beginning: String }),
      secretCommands: {},
    }),
    async hostDirectory() {
      asked.resolve();
      return await answered.promise;
    },
  };
  const context = {
    store: { ...store, get },
    service: { metricsNetworks: [] },
    log: pino({ level: "silent" }),
    projects: { list: () => [project], find: () => project, faults: () => new Map() },
  } as unknown as ServerContext;
  const socketPath = join(directory, "front.sock");
  const socket = await openSocket(context, "front", socketPath);
  t.after(() => socket?.close());
  t.mock.timers.enable({ apis: ["setInterval"] });
  const ask = (path: string) =>
    request({ socketPath, path, headers: { authorization: `Bearer ${secret}` } }).end();
  const leaving = ask("/projects/default/services/web/log").on("error", () => {});
  await asked.promise;
  leaving.destroy();
  const [visitor] = await once(ask("/visitor"), "response");
  await visitor.resume().toArray();
  answered.resolve(directory);
  const [refused] = await once(ask("/projects/default/services/none/log"), "response");
  await refused.resume().toArray();
  const before = looks;
  t.mock.timers.tick(5_000);
  assert.equal(looks, before);
});
