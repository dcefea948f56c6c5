import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Check, createChecks } from "../../src/deployments/checks.ts";
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

const confirmMs = 10_000;
const pollMs = 600_000;

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
  | { kind: "manual"; ref: number }
  /** A check of a commit starts, ends or is run again, whatever it was before. Its delivery comes once, twice or never. */
  | { kind: "check"; name: string; nth: number; state: Check["state"]; deliveries: number }
  /** DEPLOY_AFTER may be another thing now: all checks, or those named. */
  | { kind: "wants"; all: boolean }
  | { kind: "host"; isDown: boolean }
  | { kind: "time"; ms: number };

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
  [
    { ...pushed, isBroken: true },
    ran,
    { kind: "manual", ref: 0 },
    { kind: "lag", ref: 0, nth: 0 },
    ran,
    { ...others, isOther: false },
    { kind: "sync" },
    ran,
  ],
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
  await liveThrough(happening, { histories: 30, known }, (scope, history) => live(scope, history, false));
});

const states = ["pending", "succeeded", "succeeded", "succeeded", "failed", "skipped"];
const checkHappening = fc.oneof(
  happens(4, "push", {
    ref: fc.constant(0),
    nth,
    to: fc.constantFrom("next", "next", "next", "next", "back"),
    isBroken: onceIn(6),
    isLost: onceIn(4),
    isShown: fc.constant(true),
  }),
  happens(1, "deliver", { nth, isOther: fc.boolean() }),
  happens(8, "check", {
    name: fc.constantFrom("build", "test", "hotpush/shop"),
    nth: fc.nat(3),
    state: fc.constantFrom(...states),
    deliveries: fc.nat(2),
  }),
  happens(1, "wants", { all: fc.boolean() }),
  happens(1, "host", { isDown: fc.boolean() }),
  happens(4, "time", { ms: fc.constantFrom(1_000, 10_000, pollMs, 4_000_000) }),
  happens(1, "restart"),
  happens(1, "manual", { ref: fc.constant(0) }),
) as fc.Arbitrary<Happening>;

const ended = (name: string, state: Check["state"], deliveries = 1, of = 0) =>
  ({ kind: "check", name, nth: of, state, deliveries }) as const;
const hour = { kind: "time", ms: 4_000_000 } as const;
const knownOfChecks: readonly (readonly Happening[])[] = [
  // Green only after the deadline, with its delivery, and without.
  [pushed, ended("build", "failed"), hour, ended("build", "succeeded")],
  [pushed, ended("build", "failed"), hour, ended("build", "succeeded", 0)],
  [pushed, ended("build", "failed"), hour, { kind: "restart" }, ended("build", "succeeded", 0)],
  // The older one turns green after the newer one was pushed.
  [pushed, ended("build", "pending"), pushed, ended("build", "succeeded", 1, 1)],
  // Hotpush's own mark is the only one.
  [pushed, ended("hotpush/shop", "succeeded")],
  [pushed, ended("hotpush/shop", "failed"), ended("build", "succeeded"), ended("test", "succeeded")],
  // Quick and green, before the other one begins.
  [pushed, ended("build", "succeeded"), ended("test", "pending"), hour],
  [pushed, { kind: "host", isDown: true }, ended("build", "succeeded"), hour],
];

test("whatever happens, in whatever order: nothing red is deployed, and a green head is", async () => {
  let green = 0;
  await liveThrough(checkHappening, { histories: 24, known: knownOfChecks }, async (scope, history) => {
    if (await live(scope, history, true)) green += 1;
  });
  assert.ok(green > 0);
});

/**
 * Lives through a history with a real remote and a real database, and then through a time in which nothing more happens.
 *
 * @param doesWait whether there is DEPLOY_AFTER. Then a deployment has its turn as soon as it may, and the first commit is live
 * @returns whether the last head is green
 */
async function live(scope: Scope, history: readonly Happening[], doesWait: boolean): Promise<boolean> {
  const { remotePath, repoPath } = makeProject(scope);
  const store = temporaryStore(scope);
  let nowMs = 0;
  let isDown = false;
  let wantsAll = true;
  const first = git(remotePath, "rev-parse", "main");
  git(remotePath, "update-ref", "refs/heads/master", first);
  const heads = new Map<MainRef, string>(mainRefs.map((one) => [one, first]));
  /** Every commit that a branch was ever at, once for each time. */
  const arrivals: [string, string][] = mainRefs.map((one) => [one, first]);
  const found = new Map<string, Map<string, Check["state"]>>([[first, new Map([["build", "succeeded"]])]]);
  const broken = new Set<string>();
  const deliveries: Push[] = [];
  /** Runs of scripts that nobody asked for and that nothing interrupted. */
  const runs: [string, string][] = [];
  /** What may run once more. */
  const redelivered: [string, string][] = [];
  /** By the id of a deployment, which arrival of its branch it deployed. */
  const deployedAt = new Map<number, number>();
  let rests = new Map<number, { readonly leastMs: number; readonly mostMs: number }>();
  /** The heads that catch-up has queued since the branch moved or the service was started. */
  const caughtUp = new Set<string>();
  const headOf = (one: MainRef) => heads.get(one) ?? first;
  const refAt = (at: number) => mainRefs[at] ?? mainRefs[0];
  const remoteHead = (one: string) => git(remotePath, "rev-parse", one);

  function start() {
    const clock = () => nowMs;
    const checks = createChecks({
      clock,
      pollMs: () => pollMs,
      deployAfter: () => (!doesWait ? null : wantsAll ? "all" : ["test"]),
      async read(commit) {
        if (isDown) return { kind: "fault", fault: "The host is down.", waitMs: 0 };
        const known = [...(found.get(commit) ?? [])];
        return { kind: "checks", checks: known.map(([name, state]) => ({ names: [name], state })) };
      },
    });
    const checkout = () => checkoutOf(repoPath);
    rests.clear();
    caughtUp.clear();
    const settings = { paths: () => [], confirmMs: () => confirmMs, checkSigned: () => null };
    return { checks, resolver: createResolver({ store, checkout, clock, checks, ...settings }) };
  }
  let service = start();

  /** By its own rule, of which the service knows nothing. */
  function isGreen(commit: string): boolean {
    const own = [...(found.get(commit) ?? [])].filter(([name]) => name !== "hotpush/shop");
    const isGood = (state?: Check["state"]) => state === "succeeded" || state === "skipped";
    if (!doesWait) return true;
    if (wantsAll) return own.length > 0 && own.every(([, state]) => isGood(state));
    const state = found.get(commit)?.get("test");
    return state === "succeeded" || (state === "skipped" && own.every(([, one]) => one !== "failed"));
  }

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
    const one = refAt(at);
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
    caughtUp.clear();
    const delivery = pushOf({ ref: one, before: before as never, commit: commit as never });
    deliveries.push(delivery);
    if (isShown) sync();
    if (!isLost) deliver(delivery);
  }

  async function run(killed: "no" | "before" | "after"): Promise<boolean> {
    const resting = [...rests].filter(([, { mostMs }]) => mostMs > nowMs).map(([id]) => id);
    const claimed = store.transaction(() => claimNext(store, resting));
    if (claimed === null) return false;
    const isAsked =
      claimed.trigger === "manual" ||
      store.get("SELECT 1 FROM deployments WHERE id = ? AND asked_after IS NOT NULL", claimed.id);
    const decision = await service.resolver.resolve(claimed, new AbortController().signal);
    const commit = decision.kind === "deploy" ? decision.commit : "";
    if (decision.kind === "deploy") {
      assert.equal(commit, remoteHead(claimed.ref), "the head is deployed, and nothing else");
      assert.ok(isAsked || isGreen(commit), "nothing is deployed that is not green");
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
      // If a person has an old head deployed while the host lags, the new one is no longer what failed last.
      const head = headOf(claimed.ref as MainRef);
      if (isAsked && commit !== head) redelivered.push([claimed.ref, head]);
    }
    store.transaction(() => {
      if (killed !== "no") {
        transition(store, claimed, "interrupted");
        resume(store, claimed.id);
      } else carryOut(store, claimed, decision, broken.has(commit) ? "failed" : "succeeded");
    });
    assert.notEqual(decision.kind, "refused");
    if (claimed.trigger === "manual") assert.equal(decision.kind, "deploy", "a person does not wait");
    if (killed === "no" && decision.kind === "wait") {
      const { leastMs, mostMs } = decision.rest ?? { leastMs: confirmMs, mostMs: confirmMs };
      rests.set(claimed.id, { leastMs: nowMs + leastMs, mostMs: nowMs + mostMs });
    }
    if (killed !== "no") service = start();
    return true;
  }

  async function runAll(): Promise<void> {
    while (await run("no"));
  }

  async function catchUp(): Promise<void> {
    const one = (findLastGood(store, mainRefs)?.ref ?? null) as MainRef | null;
    if (isBusy() || one === null) return;
    const commit = remoteHead(one);
    if ((await service.resolver.judgeHead(one, commit)) !== "deploy") return;
    if (doesWait) assert.ok(isGreen(commit) || !caughtUp.has(commit), "what was given up is queued again");
    caughtUp.add(commit);
    store.transaction(() => recordRequest(store, { trigger: "catch-up", ref: one, commit }));
  }

  function isBusy(): boolean {
    const sql = "SELECT 1 FROM deployments WHERE state IN ('queued', 'running', 'interrupted')";
    return store.get(sql) !== undefined;
  }

  /** A signed delivery of a check. */
  async function hear(): Promise<void> {
    rests = new Map([...rests].map(([id, { leastMs }]) => [id, { leastMs, mostMs: leastMs }]));
    if (service.checks.givenUp().length > 0) await catchUp();
  }

  function request(at: number): void {
    const commit = remoteHead(refAt(at));
    store.transaction(() => recordRequest(store, { trigger: "manual", ref: refAt(at), commit }));
  }

  async function happen(event: Happening): Promise<void> {
    const known = event.kind === "deliver" && deliveries[event.nth % Math.max(1, deliveries.length)];
    if (known) deliver(event.kind === "deliver" && event.isOther ? { ...known, digest: `${nowMs}` } : known);
    if (event.kind === "push") push(event);
    if (event.kind === "sync") sync();
    if (event.kind === "lag") {
      const earlier = arrivals.filter(([name]) => name === refAt(event.ref));
      git(remotePath, "update-ref", refAt(event.ref), earlier[event.nth % earlier.length]?.[1] ?? first);
    }
    if (event.kind === "run" && (await run(event.killed))) await run("no");
    if (event.kind === "restart") service = start();
    if (event.kind === "manual") request(event.ref);
    if (event.kind === "check") {
      const [, commit] = arrivals.at(-1 - (event.nth % (arrivals.length - 1))) ?? assert.fail();
      found.set(commit, new Map(found.get(commit)).set(event.name, event.state));
      for (let count = 0; count < event.deliveries; count += 1) await hear();
    }
    if (event.kind === "wants") wantsAll = event.all;
    if (event.kind === "host") isDown = event.isDown;
    if (event.kind === "time") nowMs += event.ms;
    const isLook = event.kind === "catch-up" || (event.kind === "time" && event.ms >= pollMs);
    if (isLook || (doesWait && event.kind === "restart")) await catchUp();
    if (doesWait) await runAll();
  }

  if (doesWait) {
    request(0);
    await runAll();
  }
  for (const event of history) {
    nowMs += 100;
    await happen(event);
  }
  isDown = false;
  sync();
  for (let round = 0; round < 16; round += 1) {
    nowMs += doesWait ? pollMs : confirmMs + 1;
    await runAll();
    await catchUp();
  }
  assert.ok(!isBusy(), "something waits for ever");
  const last = (findLastGood(store, mainRefs)?.ref ?? null) as MainRef | null;
  const head = last && headOf(last);
  if (last !== null && head !== null && isGreen(head)) {
    const good = findLastGood(store, [last]);
    const sql = "WHERE ref = ? AND checked_out_commit = ? AND state = 'failed'";
    const failed = selectDeployment(store, sql, last, head);
    const isLive = good !== null && liveCommit(good) === head;
    assert.ok(isLive || failed, `${head} of ${last} is neither live nor failed`);
    // What ran after it, and failed, may have changed what is live.
    const since = store.get(
      `SELECT 1 FROM deployments WHERE ref = ? AND state <> 'succeeded' AND ${isAfter("run_order")}`,
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
  return head !== null && isGreen(head);
}
