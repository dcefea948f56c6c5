import assert from "node:assert/strict";
import { after, test } from "node:test";
import fc from "fast-check";
import { startReceiver } from "../harness/receiver.ts";
import { assertHolds, runsOr } from "./fuzz.ts";
import { forgedPush, mutatedPush, signedDocument, wellFormedUnsigned } from "./requests.ts";
import { statusesFrom } from "./statuses-from.ts";

const batchSize = 250;
const connectionCount = 10;

const receiver = await startReceiver({ after });
const mainRefs = new Set<string>(["refs/heads/main", "refs/heads/master"]);

/** Sends the requests on several connections at once. @returns their statuses */
async function statusesOf(wires: readonly string[], connectionCount: number): Promise<number[]> {
  const shares = Array.from({ length: connectionCount }, (_, at) =>
    wires.filter((_wire, index) => index % connectionCount === at),
  ).filter((share) => share.length > 0);
  const statuses = (await Promise.all(shares.map((share) => statusesFrom(receiver.port, share)))).flat();
  return statuses;
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

/** Sends `count` requests from `arbitrary`, in batches. */
async function check(
  arbitrary: fc.Arbitrary<string>,
  { count, isSigned, connectionCount }: Check,
): Promise<number[]> {
  const all: number[] = [];
  const batch = fc.array(arbitrary, { minLength: batchSize, maxLength: batchSize, size: "max" });
  await assertHolds(
    fc.asyncProperty(batch, async (wires) => {
      const pushesBefore = receiver.pushes.length;
      const statuses = await statusesOf(wires, connectionCount);
      assertNoFault(statuses);
      if (!isSigned) assert.equal(receiver.pushes.length, pushesBefore, "an unsigned request was recorded");
      receiver.pushes.length = 0;
      all.push(...statuses);
    }),
    Math.ceil(runsOr(count) / batchSize),
    { endOnFailure: true },
  );
  return all;
}

test("unsigned requests of any kind are never recorded and never a fault", async () => {
  const statuses = await check(wellFormedUnsigned, { count: 20_000, isSigned: false, connectionCount });
  assert(statuses.includes(401) && statuses.includes(404) && statuses.includes(415));
});

test("pushes that have everything but the secret are all refused with 401", async () => {
  const statuses = await check(forgedPush, { count: 5_000, isSigned: false, connectionCount });
  assert.deepEqual([...new Set(statuses)], [401]);
});

test("signed documents of any kind are never a fault, and only the two refs are recorded", async () => {
  await check(signedDocument, { count: 12_000, isSigned: true, connectionCount });
});

test("real pushes with odd values in any field are never a fault, and only the two refs are recorded", async () => {
  const statuses = await check(mutatedPush, { count: 12_000, isSigned: true, connectionCount });
  assert(statuses.includes(202) && statuses.includes(200) && statuses.includes(422));
});
