import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { liveCommit } from "../../src/deployments/deployment.ts";
import { findLastGood } from "../../src/deployments/history.ts";
import { type MainRef, mainRefs, type Push } from "../../src/deployments/push.ts";
import { recordRequest, resume } from "../../src/deployments/record.ts";
import { createResolver } from "../../src/deployments/resolve.ts";
import { claimNext, isAfter, selectDeployment, transition } from "../../src/deployments/store.ts";
import { git, makeProject } from "../harness/repository.ts";
import { carryOut, checkoutOf, happens, liveThrough, onceIn } from "../harness/resolving.ts";
import { pushOf, record, temporaryStore } from "../harness/store.ts";
import type { Scope } from "../harness/temporary.ts";

const histories = 30;
const confirmMs = 10_000;

/** What happens in a history. A number chooses one of what is there, by its remainder. */
type Happening =
  /** The branch moves: by a commit, by a force push to a commit beside it, or back to an older one. Its delivery may be lost. */
  | {
      kind: "push";
      ref: number;
      to: "next" | "aside" | "back";
      nth: number;
      isBroken: boolean;
      isLost: boolean;
      isShown: boolean;
    }
  /** A delivery arrives late, or again; or that of another webhook, with other bytes. */
  | { kind: "deliver"; nth: number; isOther: boolean }
  /** The host reports the branches as they are. Until then it lags. */
  | { kind: "sync" }
  /** A server of the host answers that is far behind. */
  | { kind: "lag"; ref: number; nth: number }
  /** The next deployment has its turn; its service may be killed before or after its script began. */
  | { kind: "run"; killed: "no" | "before" | "after" }
  | { kind: "restart" }
  | { kind: "catch-up" }
  | { kind: "manual"; ref: number };

const nth = fc.nat(1_000);
const ref = fc.nat(3).map((one) => (one === 3 ? 1 : 0));
const happening = fc.oneof(
  happens(4, "push", {
    ref,
    nth,
    to: fc.constantFrom("next", "next", "aside", "back"),
    isBroken: onceIn(4),
    isLost: onceIn(4),
    isShown: onceIn(3).map((isHidden) => !isHidden),
  }),
  happens(3, "deliver", { nth, isOther: fc.boolean() }),
  happens(3, "sync"),
  happens(2, "lag", { ref, nth }),
  happens(5, "run", { killed: fc.constantFrom("no", "no", "no", "before", "after") }),
  happens(1, "restart"),
  happens(2, "catch-up"),
  happens(1, "manual", { ref }),
) as fc.Arbitrary<Happening>;

const pushed: Happening & { kind: "push" } = {
  kind: "push",
  ref: 0,
  to: "next",
  nth: 0,
  isBroken: false,
  isLost: false,
  isShown: true,
};
const ran = { kind: "run", killed: "no" } as const;
const others = { kind: "deliver", nth: 0, isOther: true } as const;

/** Histories that chance seldom makes; each would break without one of the rules. */
const known: readonly (readonly Happening[])[] = [
  [pushed, ran, { ...pushed, isShown: false }, { kind: "lag", ref: 0, nth: 0 }, ran],
  [{ ...pushed, isBroken: true }, ran, { ...others, isOther: false }, { kind: "lag", ref: 0, nth: 0 }, ran],
  [{ ...pushed, isBroken: true }, { kind: "manual", ref: 1 }, ran, others, { ...others, isOther: false }],
  [pushed, ran, pushed, ran, { kind: "lag", ref: 0, nth: 1 }, others, ran],
  [pushed, ran, pushed, ran, { kind: "lag", ref: 0, nth: 1 }, { kind: "catch-up" }, ran],
  [
    pushed,
    ran,
    { kind: "lag", ref: 0, nth: 0 },
    { ...pushed, isLost: true, isShown: false },
    { kind: "catch-up" },
    ran,
  ],
  [pushed, ran, { ...pushed, isBroken: true }, ran, { ...others, nth: 1 }, ran, { kind: "catch-up" }, ran],
  [pushed, ran, others, ran, { kind: "catch-up" }, ran],
  [pushed, ran, { ...pushed, isLost: true }, { kind: "restart" }, others, ran],
  [pushed, ran, pushed, ran, { ...pushed, to: "back", nth: 1 }, ran],
  [pushed, ran, { ...pushed, isBroken: true }, ran, { ...pushed, to: "back", nth: 1 }, ran],
  [pushed, ran, { ...pushed, isBroken: true }, ran, { kind: "lag", ref: 0, nth: 1 }, others, ran],
  [
    { ...pushed, isBroken: true, isShown: false },
    ran,
    { kind: "sync" },
    { ...pushed, to: "back", isLost: true, isShown: false },
    others,
    ran,
  ],
];

test("whatever arrives, in whatever order: the head ends live or failed, and runs once", async () => {
  await liveThrough(happening, { histories, known }, live);
});

/** Lives through a history with a real remote and a real database, and then through a time in which nothing more happens. */
async function live(scope: Scope, history: readonly Happening[]): Promise<void> {
  const { remotePath, repoPath } = makeProject(scope);
  const store = temporaryStore(scope);
  let nowMs = 0;
  const checkout = () => checkoutOf(repoPath);
  const start = () => createResolver({ store, checkout, confirmMs, clock: () => nowMs });
  let resolver = start();
  const first = git(remotePath, "rev-parse", "main");
  git(remotePath, "update-ref", "refs/heads/master", first);
  const heads = new Map<MainRef, string>(mainRefs.map((one) => [one, first]));
  /** Every commit that a branch was ever at, once for each time. */
  const arrivals: [string, string][] = mainRefs.map((one) => [one, first]);
  const broken = new Set<string>();
  const deliveries: Push[] = [];
  /** Runs of scripts that nobody asked for and that nothing interrupted. */
  const runs: [string, string][] = [];
  const redelivered: [string, string][] = [];
  /** By the id of a deployment, which arrival of its branch it deployed. */
  const deployedAt = new Map<number, number>();
  const restsUntilMs = new Map<number, number>();
  const resting = () => [...restsUntilMs].filter(([, untilMs]) => untilMs > nowMs).map(([id]) => id);
  const headOf = (one: MainRef) => heads.get(one) ?? first;

  function deliver(push: Push): void {
    const sql =
      "SELECT d.checked_out_commit AS tried FROM deliveries JOIN deployments d ON d.id = deployment_id WHERE digest = ?";
    const before = store.get(sql, push.digest);
    const { kind } = record(store, push);
    // "Redeliver" of what failed asks for one run more. While the host lags, catch-up or another delivery may be what runs it.
    if (before && kind === "accepted") redelivered.push([push.ref, String(before.tried ?? push.commit)]);
  }

  function sync(): void {
    for (const [one, commit] of heads) git(remotePath, "update-ref", one, commit);
  }

  function push({ ref: at, to, nth: which, isBroken, isLost, isShown }: Happening & { kind: "push" }): void {
    const one = mainRefs[at] ?? mainRefs[0];
    const before = headOf(one);
    const earlier = arrivals.filter(([name]) => name === one).map(([, commit]) => commit);
    const chosen = earlier[which % earlier.length] ?? first;
    const parent = to === "next" ? before : chosen;
    const tree = git(remotePath, "rev-parse", `${parent}^{tree}`);
    const made = () => git(remotePath, "commit-tree", tree, "-p", parent, "-m", `commit ${arrivals.length}`);
    const commit = to === "back" ? chosen : made();
    if (commit === before) return;
    if (to !== "back" && isBroken) broken.add(commit);
    heads.set(one, commit);
    arrivals.push([one, commit]);
    const delivery = pushOf({ ref: one, before: before as never, commit: commit as never });
    deliveries.push(delivery);
    if (isShown) sync();
    if (!isLost) deliver(delivery);
  }

  async function run(killed: "no" | "before" | "after"): Promise<boolean> {
    const claimed = store.transaction(() => claimNext(store, resting()));
    if (claimed === null) return false;
    const isAsked =
      claimed.trigger === "manual" ||
      store.get("SELECT 1 FROM deployments WHERE id = ? AND asked_after IS NOT NULL", claimed.id);
    const decision = await resolver.resolve(claimed, new AbortController().signal);
    const commit = decision.kind === "deploy" ? decision.commit : "";
    if (decision.kind === "deploy") {
      const wasHead = arrivals.some(([name, one]) => name === claimed.ref && one === commit);
      assert.ok(wasHead, `${commit} was never the head of ${claimed.ref}`);
      const good = findLastGood(store, [claimed.ref]);
      const arrivedAt = (one: string) =>
        arrivals.findLastIndex((pair) => pair.join() === [claimed.ref, one].join());
      // If the branch was moved back to what is live, nobody may know that yet.
      const goodArrivedAt = good ? (deployedAt.get(good.id) ?? arrivedAt(liveCommit(good))) : -1;
      const isBack = arrivedAt(commit) < goodArrivedAt;
      deployedAt.set(claimed.id, arrivedAt(commit));
      assert.ok(
        isAsked || !isBack,
        `${commit} is older than what was live, and nobody has moved the branch back`,
      );
      if (!isAsked && killed === "no" && claimed.attempts === 1) runs.push([claimed.ref, commit]);
    }
    store.transaction(() => {
      if (killed !== "no") {
        transition(store, claimed, "interrupted");
        resume(store, claimed.id);
      } else carryOut(store, claimed, decision, broken.has(commit) ? "failed" : "succeeded");
    });
    assert.notEqual(decision.kind, "refused");
    if (killed === "no" && decision.kind === "wait") restsUntilMs.set(claimed.id, nowMs + confirmMs);
    if (killed !== "no") resolver = start();
    return true;
  }

  async function catchUp(): Promise<void> {
    const isBusy = store.get("SELECT 1 FROM deployments WHERE state IN ('queued', 'running', 'interrupted')");
    const one = (findLastGood(store, mainRefs)?.ref ?? null) as MainRef | null;
    if (isBusy !== undefined || one === null) return;
    const commit = git(remotePath, "rev-parse", one);
    if ((await resolver.judgeHead(one, commit)) !== "deploy") return;
    store.transaction(() => recordRequest(store, { trigger: "catch-up", ref: one, commit }));
  }

  for (const event of history) {
    nowMs += 100;
    if (event.kind === "push") push(event);
    if (event.kind === "sync") sync();
    if (event.kind === "lag") {
      const one = mainRefs[event.ref] ?? mainRefs[0];
      const earlier = arrivals.filter(([name]) => name === one);
      git(remotePath, "update-ref", one, earlier[event.nth % earlier.length]?.[1] ?? first);
    }
    if (event.kind === "run" && (await run(event.killed))) await run("no");
    if (event.kind === "restart") resolver = start();
    if (event.kind === "catch-up") await catchUp();
    if (event.kind === "manual") {
      const one = mainRefs[event.ref] ?? mainRefs[0];
      const commit = git(remotePath, "rev-parse", one);
      store.transaction(() => recordRequest(store, { trigger: "manual", ref: one, commit }));
    }
    const known = event.kind === "deliver" && deliveries[event.nth % Math.max(1, deliveries.length)];
    if (known) deliver(event.kind === "deliver" && event.isOther ? { ...known, digest: `${nowMs}` } : known);
  }

  sync();
  for (let round = 0; round < 12; round += 1) {
    nowMs += confirmMs + 1;
    while (await run("no"));
    await catchUp();
  }
  assert.equal(
    store.get("SELECT 1 FROM deployments WHERE state IN ('queued', 'running', 'interrupted')"),
    undefined,
  );
  const last = (findLastGood(store, mainRefs)?.ref ?? null) as MainRef | null;
  if (last !== null) {
    const head = headOf(last);
    const good = findLastGood(store, [last]);
    const failed = selectDeployment(
      store,
      "WHERE ref = ? AND checked_out_commit = ? AND state = 'failed'",
      last,
      head,
    );
    const isLive = good !== null && liveCommit(good) === head;
    assert.ok(isLive || failed, `${head} of ${last} is neither live nor failed`);
    // What ran after it, and failed, may have changed what is live.
    const since = store.get(
      `SELECT 1 FROM deployments WHERE ref = ? AND has_run AND state <> 'succeeded' AND ${isAfter("queue_order")}`,
      last,
      good?.id ?? null,
    );
    assert.ok(!isLive || failed || since === undefined, `nobody knows whether ${head} of ${last} is live`);
  }
  const count = (list: readonly (readonly string[])[], pair: readonly string[]) =>
    list.filter((one) => one.join() === pair.join()).length;
  for (const pair of runs) {
    const most = count(arrivals, pair) + count(redelivered, pair);
    assert.ok(count(runs, pair) <= most, `${pair[1]} ran ${count(runs, pair)} times`);
  }
}
