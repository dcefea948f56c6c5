import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { claimNext } from "../../src/deployments/claim.ts";
import { recordPush, recordWish } from "../../src/deployments/record.ts";
import { settle } from "../../src/deployments/settle.ts";
import type { Store } from "../../src/deployments/store.ts";
import type { Push } from "../../src/receiver/push.ts";
import { commitOf, pushOf, temporaryStore } from "../harness/store.ts";

/**
 * Git hosts deliver out of order and more than once. Whatever the order, when every push of a branch has been delivered
 * the branch's tip is what runs last. Two things cannot be known from the pushes alone and are left to catch-up, which
 * asks the remote: a branch that came back to the very commit at which its known history begins (every commit was then
 * arrived at as often as departed from), and a branch that was deleted and made anew (nobody departed from its old tip).
 */

const endings = ["succeeded", "failed", "timed_out"] as const;

/** A history of a branch: what it points at after each push. With few commits it often comes back to an old one. */
const history = fc
  .record({
    isNew: fc.boolean(),
    visits: fc.array(fc.constantFrom("A", "B", "C", "D", "E"), { minLength: 2, maxLength: 9 }),
  })
  .map(({ isNew, visits }) => ({ isNew, visits: visits.filter((name, at) => name !== visits[at - 1]) }))
  .filter(({ isNew, visits }) => visits.length > 1 && (isNew || visits.at(-1) !== visits[0]));

/** A history, the order in which its pushes are delivered (some more than once), and how runs between them end. */
const delivered = history.chain(({ isNew, visits }) => {
  const pushes = pushesOf(visits, isNew);
  const each = fc.shuffledSubarray([...pushes.keys()], { minLength: pushes.length });
  const repeated = fc.array(fc.nat(pushes.length - 1), { maxLength: 4 });
  return fc.record({
    visits: fc.constant(visits),
    pushes: fc.constant(pushes),
    order: fc
      .tuple(each, repeated, fc.infiniteStream(fc.nat(12)))
      .map(([order, again, places]) => mixedIn(order, again, places)),
    runs: fc.array(fc.option(fc.constantFrom(...endings)), { minLength: 14, maxLength: 14 }),
  });
});

test("in whatever order the pushes of a branch are delivered, its tip is what is deployed in the end", (t) => {
  const store = temporaryStore(t);
  fc.assert(
    fc.property(delivered, ({ visits, pushes, order, runs }) => {
      const last = lastDeployed(store, pushes, order, runs);
      assert.equal(last, commitOf(visits.at(-1) ?? ""));
    }),
    { numRuns: 20_000 },
  );
});

test("pushes that are delivered in order deploy the tip, closed loops back to the first commit too", (t) => {
  const store = temporaryStore(t);
  const looped = fc.array(fc.constantFrom("A", "B", "C"), { minLength: 2, maxLength: 9 });
  fc.assert(
    fc.property(looped, (names) => {
      const visits = names.filter((name, at) => name !== names[at - 1]);
      fc.pre(visits.length > 1);
      const pushes = pushesOf(visits, false);
      const last = lastDeployed(store, pushes, [...pushes.keys()], []);
      assert.equal(last, commitOf(visits.at(-1) ?? ""));
    }),
    { numRuns: 2_000 },
  );
});

test("after a push that was never delivered, one that goes back is the newest, not what was there before", (t) => {
  const store = temporaryStore(t);
  // C to D and E to F are delivered, D to E is not; then somebody goes back from F to E.
  const all = pushesOf(["C", "D", "E", "F", "E"], false);
  const heard = all.filter((_, at) => at !== 1);
  assert.equal(lastDeployed(store, heard, [...heard.keys()], []), commitOf("E"));
});

test("a late push of an older commit does not come before what the remote has told of", (t) => {
  const store = temporaryStore(t);
  const [toB, toC] = pushesOf(["A", "B", "C"], false);
  assert.ok(toB && toC);
  store.transaction(() => recordPush(store, toC));
  store.transaction(() => recordWish(store, { trigger: "catch-up", ref: toC.ref, commit: commitOf("D") }));
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

/** Puts each of `again` into `order` somewhere. */
function mixedIn(order: readonly number[], again: readonly number[], places: Iterator<number>): number[] {
  const mixed = [...order];
  for (const push of again) mixed.splice(places.next().value % (mixed.length + 1), 0, push);
  return mixed;
}

/** The commit that is deployed last, when all is delivered and all that was queued has run. */
function lastDeployed(
  store: Store,
  pushes: readonly Push[],
  order: readonly number[],
  runs: readonly ((typeof endings)[number] | null)[],
): string | null {
  let last: string | null = null;
  const run = (state: (typeof endings)[number]) => {
    const claimed = claimNext(store);
    if (!claimed) return false;
    last = claimed.commit;
    settle(store, claimed, { state, exitCode: null, problem: null });
    return true;
  };
  undone(store, () => {
    order.forEach((index, at) => {
      const push = pushes[index];
      if (push) recordPush(store, push);
      const state = runs[at];
      if (state) run(state);
    });
    while (run("succeeded"));
  });
  return last;
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
