import assert from "node:assert/strict";
import { mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { open as openFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { askOverSocket, openSpool, type Spool } from "../../../src/front/webhook/spool.ts";
import type { Log } from "../../../src/log.ts";
import { listenAt } from "../../harness/listen.ts";
import { pushOf } from "../../harness/store.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";
import { until } from "../../harness/until.ts";

const log = { info() {}, warn() {}, error() {} } as unknown as Log;

interface Place {
  readonly directory: string;
  readonly socketPath: string;
}

function placeIn(directory: string): Place {
  return { directory: join(directory, "spool"), socketPath: join(directory, "front.sock") };
}

async function open(t: TestContext, { directory, socketPath }: Place, mostWaiting?: number): Promise<Spool> {
  const spool = await openSpool({
    directory,
    log,
    askRun: askOverSocket(socketPath),
    ...(mostWaiting !== undefined && { mostWaiting }),
  });
  t.after(() => spool.close());
  return spool;
}

/** Somebody in the place of `run`, who answers each call with what `answer` makes of its body. */
async function startRun(
  t: TestContext,
  { socketPath }: Place,
  answer: (path: string, body: { readonly ids: readonly string[] }) => unknown,
) {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const value = answer(request.url ?? "", JSON.parse(Buffer.concat(chunks).toString()));
    response.end(typeof value === "string" ? value : JSON.stringify(value));
  });
  await listenAt(t, server, socketPath);
}

const recordOf = (id: number) => ({
  kind: "accepted",
  deployment: { id, ref: "refs/heads/main", commit: "a".repeat(40), state: "queued" },
});
const waitingIn = ({ directory }: Place) =>
  readdirSync(directory).filter((name) => name.endsWith(".push")).length;

for (const [what, answer] of [
  ["nobody", null],
  ["no JSON", "<html>"],
  ["a push that was not offered", { pushes: [{ id: "../../etc", record: recordOf(1) }] }],
] as const) {
  test(`if ${what} answers, a push stays in the spool, and its sender gets its id soon`, async (t) => {
    const place = placeIn(temporaryDirectory(t));
    const spool = await open(t, place);
    if (answer !== null) await startRun(t, place, () => answer);
    const stored = await spool.add("shop", pushOf());
    assert.equal(stored.kind, "stored");
    assert.equal(waitingIn(place), 1);
  });
}

test("what an earlier front has left is offered again, and what was unfinished is removed", async (t) => {
  const place = placeIn(temporaryDirectory(t));
  mkdirSync(place.directory);
  const [left, unfinished, young] = ["a", "b", "c"].map((digit) => digit.repeat(32));
  const names = [`${left}.push`, `${unfinished}.push.new`, `${young}.push.new`];
  for (const name of names) writeFileSync(join(place.directory, name), "{}");
  for (const name of names.slice(0, 2)) utimesSync(join(place.directory, name), 1_000, 1_000);
  const offered: string[] = [];
  await startRun(t, place, (_, { ids }) => {
    offered.push(...ids);
    return { pushes: ids.map((id) => ({ id, record: null })) };
  });
  await open(t, place);
  await until(
    "only the young one is left",
    () => readdirSync(place.directory).join() === `${young}.push.new`,
  );
  assert.deepEqual(offered, [left]);
});

test("a full spool takes nothing more, says so, and takes pushes again once run has recorded", async (t) => {
  const place = placeIn(temporaryDirectory(t));
  const spool = await open(t, place, 2);
  for (let push = 0; push < 2; push += 1) await spool.add("shop", pushOf());
  await assert.rejects(spool.add("shop", pushOf()));
  assert.equal(waitingIn(place), 2);
  assert.match(spool.findFault() ?? "", /full/);
  await startRun(t, place, (_, { ids }) => ({ pushes: ids.map((id) => ({ id, record: recordOf(1) })) }));
  await until("there is room", () => spool.findFault() === null);
  assert.equal((await spool.add("shop", pushOf())).kind, "accepted");
});

test("a push that is being written is not taken for an old one when the clock was set back", async (t) => {
  const now = Date.now;
  t.mock.method(Date, "now", () => now() - 3_600_000);
  const place = placeIn(temporaryDirectory(t));
  const spool = await open(t, place);
  let rounds = 0;
  await startRun(t, place, (_, { ids }) => {
    if (ids.length === 0) rounds += 1;
    return { pushes: ids.map((id) => ({ id, record: recordOf(1) })) };
  });
  const file = await openFile(join(place.directory, "probe"), "w");
  t.after(() => file.close());
  // Its file is unfinished while the spool is looked through.
  t.mock.method(Object.getPrototypeOf(file), "sync", () => until("three looks", () => rounds >= 2));
  assert.deepEqual(await spool.add("shop", pushOf()), recordOf(1));
});
