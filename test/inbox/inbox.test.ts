import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { type Inbox, openInbox } from "../../src/inbox/inbox.ts";
import type { Offer } from "../../src/inbox/offer.ts";
import { serveInbox } from "../../src/inbox/serve-inbox.ts";
import { type InboxCursor, type Taking, takePushes } from "../../src/inbox/take-pushes.ts";
import type { Log } from "../../src/log.ts";
import type { CommitId, Push } from "../../src/receiver/push.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const log = { info() {}, warn() {}, error() {} } as unknown as Log;

function pushOf(number: number): Push {
  return {
    host: "github",
    ref: "refs/heads/main",
    before: null,
    commit: number.toString(16).padStart(40, "a") as CommitId,
    repository: "octo/shop",
    pusher: "octo",
    digest: number.toString(16).padStart(64, "0"),
    deliveryId: null,
  };
}

interface Side {
  readonly inbox: Inbox;
  readonly socketPath: string;
}

async function startInbox(t: TestContext, directory = temporaryDirectory(t)): Promise<Side> {
  const inbox = openInbox(directory);
  const socketPath = join(directory, "inbox.sock");
  const socket = await serveInbox(inbox, socketPath, log);
  t.after(() => {
    socket.close();
    inbox.close();
  });
  return { inbox, socketPath };
}

interface TakerDisk {
  cursor: InboxCursor | null;
  isFull?: boolean;
}

interface Taker {
  readonly offers: Offer[];
  readonly logged: string[];
  readonly report: Taking["report"];
  readonly stop: () => Promise<void>;
}

/** The other side, which keeps what it has taken. `cursor` is its disk. */
function startTaking(t: TestContext, socketPath: string, disk: TakerDisk): Taker {
  const stopping = new AbortController();
  const offers: Offer[] = [];
  const logged: string[] = [];
  const keep = ({ event }: { event: string }) => void logged.push(event);
  const taking = takePushes({
    socketPath,
    readCursor: () => disk.cursor,
    async record(offer, cursor) {
      offers.push(offer);
      disk.cursor = cursor;
      const { ref, commit } = offer.push;
      return { kind: "accepted", deployment: { id: 100 + offer.seq, ref, commit, state: "queued" } };
    },
    dryRun: async ({ push: { ref, commit } }) => ({ deploy: { ref, commit, when: "now" } }),
    onSecretUse: ({ slot }) => void logged.push(slot),
    skip: (cursor) => {
      disk.cursor = cursor;
    },
    sync() {
      if (disk.isFull) throw new Error("disk full");
    },
    log: { info: keep, warn: keep, error: keep } as unknown as Log,
    signal: stopping.signal,
  });
  const stop = async () => {
    stopping.abort();
    await taking.ended;
  };
  t.after(stop);
  return { offers, logged, report: taking.report, stop };
}

test("the sender of a push gets the record that the other process made", async (t) => {
  const { inbox, socketPath } = await startInbox(t);
  startTaking(t, socketPath, { cursor: null });
  const stored = await inbox.add("shop", pushOf(1));
  assert.deepEqual(stored.kind === "accepted" && stored.deployment.id, 101);
  await until("it has left the inbox", () => inbox.countWaiting() === 0);
});

test("without the other process a push is stored, and its sender is answered soon", async (t) => {
  const { inbox } = await startInbox(t);
  const startMs = performance.now();
  assert.deepEqual(await inbox.add("shop", pushOf(1)), { kind: "stored", delivery: 1 });
  assert(performance.now() - startMs < 2_000);
  assert.equal(inbox.countWaiting(), 1);
});

test("pushes of each order arrive once, through ends of either process", async (t) => {
  const directory = temporaryDirectory(t);
  const disk: { cursor: InboxCursor | null } = { cursor: null };
  const first = openInbox(directory);
  await Promise.all([1, 2, 3].map((number) => first.add("shop", pushOf(number))));
  first.close();
  const { inbox, socketPath } = await startInbox(t, directory);
  const one = startTaking(t, socketPath, disk);
  await until("three are taken", () => one.offers.length === 3);
  await one.stop();
  await inbox.add("blog", pushOf(4));
  const other = startTaking(t, socketPath, disk);
  await until("all have left", () => inbox.countWaiting() === 0);
  const taken = [...one.offers, ...other.offers].map(({ seq, project }) => `${seq} ${project}`);
  assert.deepEqual(taken, ["1 shop", "2 shop", "3 shop", "4 blog"]);
});

test("a thousand pushes at once are all taken, in order", async (t) => {
  const { inbox, socketPath } = await startInbox(t);
  const taker = startTaking(t, socketPath, { cursor: null });
  const numbers = Array.from({ length: 1_000 }, (_, index) => index + 1);
  await Promise.all(numbers.map((number) => inbox.add("shop", pushOf(number))));
  await until("all have left", () => inbox.countWaiting() === 0);
  assert.deepEqual(
    taker.offers.map(({ seq }) => seq),
    numbers,
  );
});

test("an inbox that nothing waits in is known to be reached at once", async (t) => {
  const { inbox, socketPath } = await startInbox(t);
  const disk: { cursor: InboxCursor | null } = { cursor: null };
  const first = startTaking(t, socketPath, disk);
  await inbox.add("shop", pushOf(1));
  await until("it has left the inbox", () => inbox.countWaiting() === 0);
  await first.stop();
  const second = startTaking(t, socketPath, disk);
  await until("it is reached", () => second.report().reachedAtMs !== null, 5_000);
});

test("a dry run is answered and not stored, and the use of a secret is passed on", async (t) => {
  const { inbox, socketPath } = await startInbox(t);
  const taker = startTaking(t, socketPath, { cursor: null });
  await inbox.add("shop", pushOf(1));
  const would = await inbox.dryRun("shop", pushOf(2));
  assert.deepEqual(Object.keys(would ?? {}), ["deploy"]);
  inbox.noteSecretUse({ project: "shop", slot: "previous", host: "github", deliveryId: null });
  await until("the use has arrived", () => taker.logged.includes("previous"));
  assert.equal(taker.offers.length, 1);
});

test("a damaged inbox is moved aside, and the next one is known to be another", async (t) => {
  const disk: { cursor: InboxCursor | null } = { cursor: { inbox: "0".repeat(36), seq: 50 } };
  const { inbox, socketPath } = await startInbox(t);
  const taker = startTaking(t, socketPath, disk);
  await inbox.add("shop", pushOf(1));
  await until("it is taken", () => taker.offers.length === 1);
  assert(taker.logged.includes("inbox.changed"));
});

/** A process in the place of the inbox that answers with whatever `body` says. */
async function startLiar(t: TestContext, body: (request: string) => string): Promise<string> {
  const socketPath = join(temporaryDirectory(t), "inbox.sock");
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    response.end(body(Buffer.concat(chunks).toString()));
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return socketPath;
}

const inboxId = "11111111-1111-1111-1111-111111111111";
const good = { seq: 7, project: "shop", push: pushOf(7) };
const response = (pushes: unknown) => JSON.stringify({ inbox: inboxId, pushes, dryRuns: [], secretUses: [] });

for (const [what, text] of [
  ["no JSON", "<html>"],
  ["deep JSON", "[".repeat(900_000)],
  ["more than a response may have", response([{ ...good, more: "x".repeat(3_000_000) }])],
  ["no list of pushes", JSON.stringify({ inbox: "x", pushes: {} })],
  ["null", "null"],
] as const) {
  test(`a response with ${what} is a failure that is logged once`, async (t) => {
    const socketPath = await startLiar(t, () => text);
    const taker = startTaking(t, socketPath, { cursor: { inbox: inboxId, seq: 0 } });
    await until("it is logged", () => taker.logged.includes("inbox.unreachable"));
    assert.deepEqual(taker.offers, []);
  });
}

for (const [what, change] of [
  ["another branch", { ref: "refs/heads/dev" }],
  ["an option as its commit", { commit: "--upload-pack=x" }],
  ["a short commit", { commit: "abc1234" }],
  ["a list as its commit", { commit: [good.push.commit] }],
  ["no digest", { digest: "" }],
  ["a host with control characters", { host: "git\u001b[2Jhub" }],
  ["a commit before that is none", { before: "HEAD~1" }],
] as const) {
  test(`an offer with ${what} is refused, and the others are taken`, async (t) => {
    const bad = { ...good, seq: 6, push: { ...good.push, ...change } };
    const socketPath = await startLiar(t, () => response([bad, good]));
    const disk = { cursor: { inbox: inboxId, seq: 5 } };
    const taker = startTaking(t, socketPath, disk);
    await until("the good one is taken", () => taker.offers.length > 0);
    assert.deepEqual(taker.offers[0], good);
    assert(taker.logged.includes("inbox.refused"));
  });
}

test("places that go back, repeat or are no numbers are not taken", async (t) => {
  const seqs = [9, 3, 9, -1, 1.5, 2 ** 60, "12", null, 10];
  const socketPath = await startLiar(t, () => response(seqs.map((seq) => ({ ...good, seq }))));
  const taker = startTaking(t, socketPath, { cursor: { inbox: inboxId, seq: 8 } });
  await until("two are taken", () => taker.offers.length >= 2);
  assert.deepEqual(
    taker.offers.slice(0, 2).map(({ seq }) => seq),
    [9, 10],
  );
});

test("what is only for people is left out if it could steer a terminal", async (t) => {
  const odd = { repository: "octo/../../etc", pusher: "oc\u001b[31mto", deliveryId: "a b", extra: 1 };
  const push = { ...good.push, ...odd, repository: "a b" };
  const socketPath = await startLiar(t, () => response([{ ...good, push }]));
  const taker = startTaking(t, socketPath, { cursor: { inbox: inboxId, seq: 0 } });
  await until("it is taken", () => taker.offers.length > 0);
  assert.deepEqual(taker.offers[0]?.push, { ...good.push, repository: null, pusher: null, deliveryId: null });
});

test("two that take at the same moment leave the inbox able to answer", async (t) => {
  const { inbox } = await startInbox(t);
  const { inbox: id } = await inbox.take(
    { inbox: null, recordedSeq: 0, syncedSeq: 0, answers: [], dryRuns: [] },
    AbortSignal.abort(),
  );
  const request = { inbox: id, recordedSeq: 0, syncedSeq: 0, answers: [], dryRuns: [] };
  const signal = AbortSignal.timeout(2_000);
  const [older, newer] = [inbox.take(request, signal), inbox.take(request, signal)];
  assert.deepEqual((await older).pushes, []);
  await inbox.add("shop", pushOf(1));
  assert.equal((await newer).pushes.length, 1);
});

test("a flood leaves nothing behind that listens for the end of the service", async (t) => {
  const { inbox, socketPath } = await startInbox(t);
  const numbers = Array.from({ length: 1_000 }, (_, index) => index + 1);
  await Promise.all(numbers.map((number) => inbox.add("shop", pushOf(number))));
  const stopping = new AbortController();
  const options = { readCursor: () => null, record: async () => null, dryRun: async () => null };
  const signal = stopping.signal;
  const taking = takePushes({ ...options, socketPath, onSecretUse() {}, skip() {}, sync() {}, log, signal });
  await until("all have left", () => inbox.countWaiting() === 0);
  assert(getEventListeners(signal, "abort").length <= 2);
  stopping.abort();
  await taking.ended;
});

test("a repository in many nested groups is taken with its whole name", async (t) => {
  const repository = "a-group/of/groups/of/groups/with/a/shop";
  const push = { ...good.push, repository };
  const socketPath = await startLiar(t, () => response([{ ...good, push }]));
  const taker = startTaking(t, socketPath, { cursor: { inbox: inboxId, seq: 0 } });
  await until("it is taken", () => taker.offers.length > 0);
  assert.equal(taker.offers[0]?.push.repository, repository);
});

test("the use of a secret is offered with the push that it came with", async (t) => {
  const { inbox } = await startInbox(t);
  const request = { inbox: null, recordedSeq: 0, syncedSeq: 0, answers: [], dryRuns: [] };
  const { signal } = new AbortController();
  const { inbox: id } = await inbox.take(request, signal);
  const taken = inbox.take({ ...request, inbox: id }, signal);
  inbox.noteSecretUse({ project: "shop", slot: "current", host: "github", deliveryId: null });
  const added = inbox.add("shop", pushOf(1));
  const { pushes, secretUses } = await taken;
  assert.deepEqual([pushes.length, secretUses.length], [1, 1]);
  await added;
});

test("a recorded push is soon removed from the disk, but not before its record is synced", async (t) => {
  const directory = temporaryDirectory(t);
  const { inbox, socketPath } = await startInbox(t, directory);
  const disk = { cursor: null, isFull: true };
  const taker = startTaking(t, socketPath, disk);
  assert.equal((await inbox.add("shop", pushOf(1))).kind, "accepted");
  await until("the sync has failed", () => taker.logged.includes("store.failed"));
  const database = new DatabaseSync(join(directory, "inbox.db"), { readOnly: true });
  t.after(() => database.close());
  const countRows = () => database.prepare("SELECT 1 FROM pushes").all().length;
  assert.equal(countRows(), 1);
  disk.isFull = false;
  await until("no row is left", () => countRows() === 0);
  assert.equal(taker.offers.length, 1);
});
