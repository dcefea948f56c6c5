import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type BelieveHead, createBelieveHead, type Doubt } from "../../src/deployments/doubts.ts";
import { recordPush, recordRequest } from "../../src/deployments/record.ts";
import { settle } from "../../src/deployments/record-ending.ts";
import { claimNext } from "../../src/deployments/states.ts";
import type { Store } from "../../src/platform/sqlite/store.ts";
import type { Push } from "../../src/receiver/push.ts";
import { runsOr } from "../fuzz/fuzz.ts";
import { commitOf, pushOf, record, temporaryStore } from "../harness/store.ts";

/**
 * Git hosts deliver out of order and more than once, and two webhooks report each push twice. In any order, when
 * every push of a branch has been delivered the branch's tip is what runs last. As long as the branch never came
 * back to a commit, that holds without asking the remote. Two things cannot be known from the pushes alone and are left to catch-up: a
 * branch that came back to the very commit at which its known history begins (every commit was then arrived at as often
 * as departed from), and a branch that was deleted and created again (nobody departed from its old tip).
 */

const endings = ["succeeded", "failed", "timed_out"] as const;

interface History {
  readonly isNew: boolean;
  /** What the branch points at after each push. */
  readonly visits: readonly string[];
}

/** With few commits a branch often comes back to an old one. */
const history: fc.Arbitrary<History> = fc
  .record({
    isNew: fc.boolean(),
    visits: fc.array(fc.constantFrom("A", "B", "C", "D", "E"), { minLength: 2, maxLength: 9 }),
  })
  .map(({ isNew, visits }) => ({ isNew, visits: visits.filter((name, at) => name !== visits[at - 1]) }))
  .filter(({ isNew, visits }) => visits.length > 1 && (isNew || visits.at(-1) !== visits[0]));

/** How the pushes of a history are delivered, and how the runs between the deliveries end. */
interface Delivered extends History {
  readonly deliveries: readonly Push[];
  readonly runs: readonly ((typeof endings)[number] | null)[];
}

function delivered(histories: fc.Arbitrary<History>): fc.Arbitrary<Delivered> {
  return histories.chain((one) => {
    const pushes = pushesOf(one.visits, one.isNew);
    const each = fc.shuffledSubarray([...pushes], { minLength: pushes.length });
    const copies = fc.array(fc.constantFrom(...pushes), { maxLength: 3 });
    const reported = fc.array(fc.constantFrom(...pushes.filter(({ before }) => before)), { maxLength: 3 });
    return fc.record({
      isNew: fc.constant(one.isNew),
      visits: fc.constant(one.visits),
      deliveries: fc
        .tuple(each, copies, reported, fc.infiniteStream(fc.nat(20)))
        .map(([order, again, others, places]) =>
          mixedIn(order, [...again, ...others.map(asReported)], places),
        ),
      runs: fc.array(fc.option(fc.constantFrom(...endings)), { minLength: 20, maxLength: 20 }),
    });
  });
}

test("with a remote, any order and number of deliveries ends with the tip deployed", (t) => {
  const store = temporaryStore(t);
  fc.assert(
    fc.property(delivered(history), (one) => {
      const tip = commitOf(one.visits.at(-1) ?? "");
      assert.equal(
        lastDeployed(store, one, () => tip),
        tip,
      );
    }),
    { numRuns: runsOr(1_000) },
  );
});

test("without a remote the tip is deployed if the branch never returned to a commit", (t) => {
  const store = temporaryStore(t);
  const once = history.filter(({ visits }) => new Set(visits).size === visits.length);
  fc.assert(
    fc.property(delivered(once), (one) => {
      assert.equal(lastDeployed(store, one, null), commitOf(one.visits.at(-1) ?? ""));
    }),
    { numRuns: runsOr(1_000) },
  );
});

test("pushes in order deploy the tip, even with loops and repeated steps", (t) => {
  const store = temporaryStore(t);
  const looped = fc.array(fc.constantFrom("A", "B", "C"), { minLength: 2, maxLength: 9 });
  // Without a remote that answers, a step that can have been made again was.
  for (const isAnswering of [true, false]) {
    fc.assert(
      fc.property(looped, (names) => {
        const visits = names.filter((name, at) => name !== names[at - 1]);
        fc.pre(visits.length > 1);
        const deliveries = pushesOf(visits, false);
        const remote = isAnswering ? (push: Push) => push.commit : null;
        assert.equal(lastDeployed(store, { deliveries, runs: [] }, remote), commitOf(visits.at(-1) ?? ""));
      }),
      { numRuns: runsOr(500) },
    );
  }
});

test("a push is judged in no time after a flood of pushes that meet in one commit", (t) => {
  const store = temporaryStore(t);
  const add = (before: string, commit: string) =>
    store.run(
      "INSERT INTO deployments (project, trigger, ref, before_commit, commit_id, state, queue_order, created_at_ms) VALUES ($project, 'push', 'refs/heads/main', ?, ?, 'superseded', 1, 1)",
      ...[before, commit],
    );
  store.transaction(() => {
    for (let index = 0; index < 500; index += 1) {
      const name = commitOf(`${index}`);
      add(name, commitOf("hub"));
      add(commitOf("hub"), name);
      add(commitOf("hub"), name);
    }
  });
  assertQuick(() => record(store, pushOf({ before: commitOf("x"), commit: commitOf("hub") })));
});

test("fifty thousand reports of one push do not make a late push slow", (t) => {
  const store = temporaryStore(t);
  const [before, commit] = [commitOf("A"), commitOf("B")];
  record(store, pushOf({ before, commit }));
  const insert = `WITH RECURSIVE reports (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM reports WHERE n < 50000)
    INSERT INTO deliveries SELECT $project, hex(randomblob(32)), 1, 'refs/heads/main', ?, NULL, 1 FROM reports`;
  store.transaction(() => store.run(insert, commit));
  record(store, pushOf({ before: commitOf("X"), commit: commitOf("Y") }));
  assertQuick(() => {
    const late = record(store, pushOf({ before: commitOf("Z"), commit: before }));
    assert.equal(late.deployment.state, "superseded");
  });
});

/** Within 100 ms of processor time: others may be busy. */
function assertQuick(work: () => unknown): void {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  assert(user + system < 100_000, `it took ${user + system} µs`);
}

test("after a push that was never delivered, one that goes back is the newest", (t) => {
  const store = temporaryStore(t);
  // C to D and E to F are delivered, D to E is not; then somebody goes back from F to E.
  const all = pushesOf(["C", "D", "E", "F", "E"], false);
  const heard = all.filter((_, at) => at !== 1);
  assert.equal(lastDeployed(store, { deliveries: heard, runs: [] }, null), commitOf("E"));
});

test("a late push of an older commit does not replace what the remote reported", (t) => {
  const store = temporaryStore(t);
  const [toB, toC] = pushesOf(["A", "B", "C"], false);
  assert.ok(toB && toC);
  store.transaction(() => recordPush(store, toC));
  store.transaction(() => recordRequest(store, { trigger: "catch-up", ref: toC.ref, commit: commitOf("D") }));
  const late = store.transaction(() => recordPush(store, toB));
  assert.equal(late.deployment.state, "superseded");
  assert.equal(store.transaction(() => claimNext(store))?.commit, commitOf("D"));
});

function pushesOf(visits: readonly string[], isNew: boolean): readonly Push[] {
  const from = isNew ? [null, ...visits] : visits;
  return from.slice(1).map((name, at) => {
    const before = from[at];
    return pushOf({
      before: before ? commitOf(before) : null,
      commit: commitOf(name ?? ""),
      digest: `delivery ${at}`,
    });
  });
}

/** The same push as another webhook reports it. */
function asReported(push: Push, webhook: number): Push {
  return { ...push, digest: `${push.digest} of webhook ${webhook}` };
}

/** Puts each of `again` into `order` somewhere. */
function mixedIn(order: readonly Push[], again: readonly Push[], places: Iterator<number>): readonly Push[] {
  const mixed = [...order];
  for (const push of again) mixed.splice(places.next().value % (mixed.length + 1), 0, push);
  return mixed;
}

/**
 * The commit that is deployed last, when all is delivered and all that was queued has run.
 *
 * @param remote where the remote says the branch is when a push was delivered; null: it does not answer
 */
function lastDeployed(
  store: Store,
  { deliveries, runs }: Pick<Delivered, "deliveries" | "runs">,
  remote: ((push: Push) => string) | null,
): string | null {
  let last: string | null = null;
  const run = (state: (typeof endings)[number]) => {
    const claimed = claimNext(store);
    if (!claimed) return false;
    last = claimed.commit;
    settle(store, claimed, { state, exitCode: null, problem: null });
    return true;
  };
  const believeHead = createBelieveHead(store, 0);
  undone(store, () => {
    deliveries.forEach((push, at) => {
      const { doubt } = recordPush(store, push);
      const state = runs[at];
      if (state) run(state);
      if (doubt) resolve(store, doubt, remote?.(push) ?? null, believeHead);
    });
    while (run("succeeded"));
  });
  return last;
}

/** What is made of the remote's answers about one doubtful push, when nothing of the branch waits. */
function resolve(store: Store, doubt: Doubt, head: string | null, believeHead: BelieveHead): void {
  const { ref, before, commit } = doubt;
  const isHere = head === null ? doubt.isLikely : head === commit;
  if (head === null && !isHere) return;
  const verdicts = [1, 2].map(() => believeHead(ref, head ?? commit, isHere && doubt.isFirst));
  if (!verdicts.includes("missing")) return;
  recordRequest(store, {
    trigger: "catch-up",
    ref,
    before: isHere ? before : null,
    commit: head ?? commit,
  });
}

/** Does `work` in a transaction that is rolled back: thousands of histories, and no sync of the disk for any. */
function undone(store: Store, work: () => void): void {
  const enough = new Error("enough");
  try {
    store.transaction(() => {
      work();
      throw enough;
    });
  } catch (error) {
    if (error !== enough) throw error;
  }
}
