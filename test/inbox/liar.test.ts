import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { openInbox } from "../../src/inbox/inbox.ts";
import { type TakeOptions, takePushes } from "../../src/inbox/take-pushes.ts";
import type { Log } from "../../src/log.ts";
import { listenAt } from "../harness/listen.ts";
import { pushOf } from "../harness/store.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

/** What somebody in the place of the inbox can do to the process that takes from it. */
interface Taker {
  readonly places: number[];
  readonly logged: string[];
  readonly requests: () => number;
}

const inboxId = "11111111-1111-1111-1111-111111111111";

/** Takes from a process that answers with whatever `answer` does. */
async function takeFrom(
  t: TestContext,
  answer: (response: ServerResponse, request: IncomingMessage) => unknown,
  options: Partial<TakeOptions> = {},
): Promise<Taker> {
  let requests = 0;
  const server = createServer(async (request, response) => {
    requests += 1;
    await answer(response, request);
  });
  const socketPath = await listenAt(t, server, join(temporaryDirectory(t), "inbox.sock"));
  const stopping = new AbortController();
  const places: number[] = [];
  const logged: string[] = [];
  const keep = ({ event }: { event: string }) => void logged.push(event);
  const taking = takePushes({
    socketPath,
    readCursor: () => ({ inbox: inboxId, seq: 0 }),
    async record({ seq, push: { ref, commit } }) {
      places.push(seq);
      return { kind: "accepted", deployment: { id: seq, ref, commit, state: "queued" } };
    },
    dryRun: async () => null,
    onSecretUse() {},
    skip() {},
    sync() {},
    log: { info: keep, warn: keep, error: keep } as unknown as Log,
    signal: stopping.signal,
    ...options,
  });
  t.after(async () => {
    stopping.abort();
    await taking.ended;
  });
  return { places, logged, requests: () => requests };
}

const responseOf = (fields: object) =>
  JSON.stringify({ inbox: inboxId, pushes: [], dryRuns: [], secretUses: [], ...fields });

let ids = 0;
const nextId = () => String(++ids).padStart(36, "0");

for (const [what, answer] of [
  ["is another one each time", () => responseOf({ inbox: nextId() })],
  ["has nothing, and says so at once", () => responseOf({})],
  ["offers only what are no pushes", () => responseOf({ pushes: [{ seq: ++ids }] })],
  ["is broken every second time", () => (++ids % 2 === 0 ? "{" : responseOf({}))],
] as const) {
  test(`an inbox that ${what} costs few requests and few lines`, async (t) => {
    const startMs = performance.now();
    const taker = await takeFrom(t, (response) => response.end(answer()));
    await until("a second has passed", () => performance.now() - startMs > 1_000);
    assert(taker.requests() < 300, `${taker.requests()} requests`);
    assert(taker.logged.length <= 20, `${taker.logged.length} lines`);
  });
}

test("dry runs that never end do not keep pushes waiting", async (t) => {
  let seq = 0;
  const dryRuns = Array.from({ length: 20 }, (_, id) => ({ id: id + 1, project: "shop", push: pushOf() }));
  const offer = () => ({ seq: ++seq, project: "shop", push: pushOf() });
  const taker = await takeFrom(t, (response) => response.end(responseOf({ pushes: [offer()], dryRuns })), {
    dryRun: () => new Promise(() => {}),
  });
  await until("five pushes are taken", () => taker.places.length >= 5, 2_000);
});

test("a dry run that fails is answered with nothing, and pushes with their record", async (t) => {
  const sent: string[] = [];
  const taker = await takeFrom(
    t,
    async (response, request) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
      sent.push(Buffer.concat(chunks).toString());
      const pushes = [{ seq: sent.length, project: "shop", push: pushOf() }];
      response.end(responseOf({ pushes, dryRuns: [{ id: 7, project: "shop", push: pushOf() }] }));
    },
    { dryRun: () => Promise.reject(new Error("disk full")) },
  );
  // The first request only asks which inbox it is, the second takes, and the third answers.
  await until("both are answered", () => sent.length > 2);
  const { answers, dryRuns } = JSON.parse(sent[2] ?? "");
  assert.deepEqual([answers[0].seq, dryRuns], [2, [{ id: 7, would: null }]]);
  assert(!taker.logged.includes("inbox.unreachable"));
});

test("an inbox of which more was taken than it ever had is another one, and loses no push", async (t) => {
  const directory = temporaryDirectory(t);
  const inbox = openInbox(directory);
  t.after(inbox.close);
  const rest = { syncedSeq: 0, answers: [], dryRuns: [] };
  const never = new AbortController().signal;
  const { inbox: id } = await inbox.take({ inbox: null, recordedSeq: 0, ...rest }, never);
  await inbox.add("shop", pushOf());
  const far = await inbox.take({ inbox: id, recordedSeq: 2 ** 52, ...rest }, never);
  assert.notEqual(far.inbox, id);
  const { pushes } = await inbox.take({ inbox: far.inbox, recordedSeq: 0, ...rest }, never);
  assert.deepEqual([pushes.length, pushes[0]?.seq], [1, 1]);
});
