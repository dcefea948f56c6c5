import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Check, createChecks } from "../../src/deployments/checks.ts";
import { type Deployment, liveCommit } from "../../src/deployments/deployment.ts";
import { findLastGood } from "../../src/deployments/history.ts";
import { recordRequest } from "../../src/deployments/record.ts";
import { createResolver } from "../../src/deployments/resolve.ts";
import { claimNext } from "../../src/deployments/store.ts";
import { git, makeProject } from "../harness/repository.ts";
import { carryOut, checkoutOf, happens, liveThrough, onceIn } from "../harness/resolving.ts";
import { pushOf, record, temporaryStore } from "../harness/store.ts";
import type { Scope } from "../harness/temporary.ts";

const histories = 24;
const ref = "refs/heads/main";
const pollMs = 600_000;

/** What happens in a history. A number chooses one of what is there, by its remainder. */
type Happening =
  /** The branch moves to a new commit, or back to an older one. Its delivery may be lost. */
  | { kind: "push"; isBack: boolean; nth: number; isLost: boolean }
  /** A delivery of a push arrives again, or that of another webhook. */
  | { kind: "deliver"; nth: number; isOther: boolean }
  /** A check of a commit starts, ends or is run again, whatever it was before. Its delivery comes once, twice or never. */
  | { kind: "check"; name: string; nth: number; state: Check["state"]; deliveries: number }
  /** What the settings want may be another thing now. */
  | { kind: "wants"; all: boolean }
  | { kind: "host"; isDown: boolean }
  | { kind: "time"; ms: number }
  | { kind: "restart" }
  | { kind: "manual" };

const nth = fc.nat(3);
const states = ["pending", "succeeded", "succeeded", "succeeded", "failed", "skipped"];
const happening = fc.oneof(
  happens(4, "push", { isBack: onceIn(5), nth, isLost: onceIn(4) }),
  happens(1, "deliver", { nth, isOther: fc.boolean() }),
  happens(8, "check", {
    name: fc.constantFrom("build", "test", "hotpush/shop"),
    nth,
    state: fc.constantFrom(...states),
    deliveries: fc.nat(2),
  }),
  happens(1, "wants", { all: fc.boolean() }),
  happens(1, "host", { isDown: fc.boolean() }),
  happens(4, "time", { ms: fc.constantFrom(1_000, 10_000, pollMs, 4_000_000) }),
  happens(1, "restart"),
  happens(1, "manual"),
) as fc.Arbitrary<Happening>;

const pushed = { kind: "push", isBack: false, nth: 0, isLost: false } as const;
const ended = (name: string, state: Check["state"], deliveries = 1, of = 0) =>
  ({ kind: "check", name, nth: of, state, deliveries }) as const;
const hour = { kind: "time", ms: 4_000_000 } as const;
/** Histories that chance seldom makes. */
const known: readonly (readonly Happening[])[] = [
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

test("whatever happens, in whatever order: nothing red is deployed, and a green head is", async (t) => {
  let live = 0;
  await liveThrough(happening, { histories, known }, async (scope, history) => {
    if (await endsGreen(scope, history)) live += 1;
  });
  t.diagnostic(`${histories} histories, of which ${live} end with a green head that is live`);
  assert.ok(live > 0);
});

/** Lives through a history, and then through hours in which nothing more happens. @returns whether the last head is green */
async function endsGreen(scope: Scope, history: readonly Happening[]): Promise<boolean> {
  const { remotePath, repoPath } = makeProject(scope);
  const store = temporaryStore(scope);
  const first = git(remotePath, "rev-parse", "main");
  const tree = git(remotePath, "rev-parse", "main^{tree}");
  const commits = [first];
  let head = first;
  const found = new Map<string, Map<string, Check["state"]>>([[first, new Map([["build", "succeeded"]])]]);
  const deliveries: ReturnType<typeof pushOf>[] = [];
  let isDown = false;
  let wantsAll = true;
  let nowMs = 0;
  const clock = () => nowMs;

  function start() {
    const checks = createChecks({
      clock,
      pollMs: () => pollMs,
      deployAfter: () => (wantsAll ? "all" : ["test"]),
      read: async (commit) =>
        isDown
          ? { kind: "fault", fault: "The host is down.", waitMs: 0 }
          : {
              kind: "checks",
              checks: [...(found.get(commit) ?? [])].map(([name, state]) => ({ names: [name], state })),
            },
    });
    return {
      checks,
      resolver: createResolver({ store, checkout: () => checkoutOf(repoPath), confirmMs: 0, clock, checks }),
    };
  }
  let service = start();
  /** The heads that catch-up has queued since the last start. */
  const caughtUp = new Set<string>();
  let rests = new Map<number, { readonly leastMs: number; readonly mostMs: number }>();

  /** By its own rule, of which the service knows nothing. */
  function isGreen(commit: string): boolean {
    const own = [...(found.get(commit) ?? [])].filter(([name]) => name !== "hotpush/shop");
    const isGood = (state?: Check["state"]) => state === "succeeded" || state === "skipped";
    if (wantsAll) return own.length > 0 && own.every(([, state]) => isGood(state));
    const state = found.get(commit)?.get("test");
    return state === "succeeded" || (state === "skipped" && own.every(([, one]) => one !== "failed"));
  }

  function isAsked({ id, trigger }: Deployment): boolean {
    const sql = "SELECT 1 FROM deployments WHERE id = ? AND asked_after IS NOT NULL";
    return trigger === "manual" || store.get(sql, id) !== undefined;
  }

  async function runAll(): Promise<void> {
    for (;;) {
      const resting = [...rests].filter(([, { mostMs }]) => mostMs > nowMs).map(([id]) => id);
      const claimed = store.transaction(() => claimNext(store, resting));
      if (claimed === null) return;
      const decision = await service.resolver.resolve(claimed, new AbortController().signal);
      if (decision.kind === "deploy") {
        assert.equal(decision.commit, head);
        assert.ok(isAsked(claimed) || isGreen(head), "nothing is deployed that is not green");
      }
      if (isAsked(claimed)) assert.notEqual(decision.kind, "wait", "a person does not wait");
      store.transaction(() => {
        carryOut(store, claimed, decision, "succeeded");
      });
      assert.notEqual(decision.kind, "refused");
      if (decision.kind !== "wait") continue;
      const { leastMs, mostMs } = decision.rest ?? { leastMs: 1_000, mostMs: 1_000 };
      rests.set(claimed.id, { leastMs: nowMs + leastMs, mostMs: nowMs + mostMs });
    }
  }

  async function catchUp(): Promise<void> {
    const isBusy = store.get("SELECT 1 FROM deployments WHERE state IN ('queued', 'running')");
    if (isBusy !== undefined || (await service.resolver.judgeHead(ref, head)) !== "deploy") return;
    assert.ok(isGreen(head) || !caughtUp.has(head), "what was given up is not queued again and again");
    caughtUp.add(head);
    store.transaction(() => recordRequest(store, { trigger: "catch-up", ref, commit: head }));
  }

  async function hear(): Promise<void> {
    rests = new Map([...rests].map(([id, { leastMs }]) => [id, { leastMs, mostMs: leastMs }]));
    if (service.checks.givenUp().length > 0) await catchUp();
  }

  async function happen(event: Happening): Promise<void> {
    if (event.kind === "push") {
      const made = () => git(remotePath, "commit-tree", tree, "-p", head, "-m", `commit ${commits.length}`);
      const to = event.isBack ? (commits.at(-1 - (event.nth % commits.length)) ?? first) : made();
      if (to === head) return;
      git(remotePath, "update-ref", ref, to);
      commits.push(to);
      const push = pushOf({ before: head as never, commit: to as never });
      head = to;
      deliveries.push(push);
      if (!event.isLost) record(store, push);
    }
    if (event.kind === "deliver" && deliveries.length > 0) {
      const push = deliveries.at(-1 - (event.nth % deliveries.length));
      if (push) record(store, event.isOther ? { ...push, digest: `${nowMs}` } : push);
    }
    if (event.kind === "check") {
      const commit = commits.at(-1 - (event.nth % commits.length)) ?? first;
      if (!found.has(commit)) found.set(commit, new Map());
      found.get(commit)?.set(event.name, event.state);
      for (let count = 0; count < event.deliveries; count += 1) await hear();
    }
    if (event.kind === "wants") wantsAll = event.all;
    if (event.kind === "host") isDown = event.isDown;
    if (event.kind === "time") nowMs += event.ms;
    if (event.kind === "time" && event.ms >= pollMs) await catchUp();
    if (event.kind === "restart") {
      service = start();
      rests.clear();
      caughtUp.clear();
      await catchUp();
    }
    if (event.kind === "manual")
      store.transaction(() => recordRequest(store, { trigger: "manual", ref, commit: head }));
  }

  store.transaction(() => recordRequest(store, { trigger: "manual", ref, commit: first }));
  await runAll();
  for (const event of history) {
    nowMs += 100;
    await happen(event);
    await runAll();
  }
  isDown = false;
  for (let round = 0; round < 16; round += 1) {
    nowMs += pollMs;
    await runAll();
    await catchUp();
  }
  assert.equal(store.get("SELECT 1 FROM deployments WHERE state IN ('queued', 'running')"), undefined);
  const good = findLastGood(store, [ref]);
  const isLive = good !== null && liveCommit(good) === head;
  assert.ok(isLive || !isGreen(head), "a green head is live in the end");
  return isGreen(head);
}
