import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, test } from "node:test";
import fc from "fast-check";
import { parseReplies } from "../harness/raw-http.ts";
import { startReceiver } from "../harness/receiver.ts";
import { anyBytes, forgedPush, mutatedPush, signedDocument, wellFormedUnsigned } from "./arbitraries.ts";

/** A failure is found again with FUZZ_SEED set to what it printed; FUZZ_FACTOR makes the runs longer. */
const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31);
const factor = Number(process.env.FUZZ_FACTOR ?? 1);
const batchSize = 250;
const connectionCount = 10;
const silenceMs = 200;
let answerCount = 0;

const receiver = await startReceiver({ after });
const mainRefs = new Set<string>(["refs/heads/main", "refs/heads/master"]);

/** Sends the requests on some connections at once, and gives the statuses that came back. */
async function statusesOf(wires: readonly string[], connectionCount: number): Promise<number[]> {
  const shares = Array.from({ length: connectionCount }, (_, at) =>
    wires.filter((_wire, index) => index % connectionCount === at),
  ).filter((share) => share.length > 0);
  const statuses = (await Promise.all(shares.map(conversation))).flat();
  answerCount += statuses.length;
  return statuses;
}

/** Requests that may be broken: whatever of them the service makes an answer of, until it or we close. */
function conversation(share: readonly string[]): Promise<number[]> {
  return new Promise((resolve) => {
    let text = "";
    let replyCount = 0;
    const socket = connect({ port: receiver.port, host: "127.0.0.1" });
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      replyCount = text.split("HTTP/1.1 ").length - 1;
      if (replyCount >= share.length) socket.end();
    });
    // What is alone on its connection may be the beginning of something that never comes.
    if (share.length === 1) socket.setTimeout(silenceMs, () => socket.end());
    socket.on("error", () => {});
    socket.on("close", () => resolve(parseReplies(text).replies.map(({ status }) => status)));
    socket.write(share.join(""), "latin1");
  });
}

function assertNoFault(statuses: readonly number[]): void {
  assert.deepEqual(receiver.faults, []);
  assert.deepEqual(
    statuses.filter((status) => status >= 500),
    [],
  );
  for (const { ref, commit } of receiver.pushes) {
    assert(mainRefs.has(ref), `${ref} was recorded`);
    assert.match(commit, /^([0-9a-f]{40}|[0-9a-f]{64})$/);
  }
}

interface Check {
  readonly count: number;
  readonly isSigned: boolean;
  readonly connectionCount: number;
}

/** Sends what `arbitrary` makes in batches, `count` requests in all. */
async function check(
  arbitrary: fc.Arbitrary<string>,
  { count, isSigned, connectionCount }: Check,
): Promise<number[]> {
  const all: number[] = [];
  const batch = fc.array(arbitrary, { minLength: batchSize, maxLength: batchSize, size: "max" });
  await fc.assert(
    fc.asyncProperty(batch, async (wires) => {
      const pushesBefore = receiver.pushes.length;
      const statuses = await statusesOf(wires, connectionCount);
      assertNoFault(statuses);
      if (!isSigned) assert.equal(receiver.pushes.length, pushesBefore, "an unsigned request was recorded");
      receiver.pushes.length = 0;
      all.push(...statuses);
    }),
    { numRuns: Math.ceil((count * factor) / batchSize), seed, endOnFailure: true },
  );
  return all;
}

test("unsigned requests of any kind are never recorded and never a fault", async (t) => {
  t.diagnostic(`seed ${seed}`);
  const statuses = await check(wellFormedUnsigned, { count: 44_000, isSigned: false, connectionCount });
  assert(statuses.includes(401) && statuses.includes(404) && statuses.includes(415));
});

test("pushes that have everything but the secret are all refused with 401", async () => {
  const statuses = await check(forgedPush, { count: 10_000, isSigned: false, connectionCount });
  assert.deepEqual([...new Set(statuses)], [401]);
});

test("bytes that are hardly HTTP are never recorded and never a fault", async () => {
  const statuses = await check(anyBytes, { count: 5_000, isSigned: false, connectionCount: batchSize });
  assert(statuses.includes(400));
});

test("signed documents of any kind are never a fault, and only the two refs are recorded", async () => {
  await check(signedDocument, { count: 26_000, isSigned: true, connectionCount });
});

test("real pushes with odd values in any field are never a fault, and only the two refs are recorded", async () => {
  const statuses = await check(mutatedPush, { count: 26_000, isSigned: true, connectionCount });
  assert(statuses.includes(202) && statuses.includes(200) && statuses.includes(422));
});

test("at least 100,000 requests were answered", (t) => {
  t.diagnostic(`${answerCount} answers`);
  assert(answerCount >= 100_000 * Math.min(1, factor));
});
