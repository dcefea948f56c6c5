import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Check,
  type ChecksReading,
  createChecks,
  type DeployAfter,
} from "../../src/deployments/checks.ts";
import { makeResolving } from "../harness/resolving.ts";
import { commitOf } from "../harness/store.ts";

const ref = "refs/heads/main";
const hourMs = 3_600_000;
const commit = commitOf("one");
const { signal } = new AbortController();

function check(name: string, state: Check["state"], more: Partial<Check> = {}): Check {
  return { names: [name], state, ...more };
}

/** Checks with a host that says what the test says, and a clock that the test sets. */
function makeChecks(deployAfter: DeployAfter | null, pollMs = 30_000) {
  const host = { nowMs: 0, reading: { kind: "checks", checks: [] } as ChecksReading, asked: 0 };
  const checks = createChecks({
    deployAfter: () => deployAfter,
    pollMs: () => pollMs,
    clock: () => host.nowMs,
    async read() {
      host.asked += 1;
      return host.reading;
    },
  });
  const judge = async (found?: readonly Check[], of = commit) => {
    if (found) host.reading = { kind: "checks", checks: found };
    return await checks.judge(ref, of, signal);
  };
  return { host, checks, judge };
}

for (const [title, after, found, kind] of [
  ["all have succeeded", "all", [check("a", "succeeded"), check("b", "skipped")], "deploy"],
  ["one has not ended", "all", [check("a", "succeeded"), check("b", "pending")], "wait"],
  ["one has failed", "all", [check("a", "succeeded"), check("b", "failed")], "wait"],
  ["there is none", "all", [], "wait"],
  ["only Hotpush's has not ended", "all", [check("a", "succeeded"), check("hotpush/b", "pending")], "deploy"],
  ["more may follow", "all", [check("a", "succeeded"), check("rest", "pending", { isGroup: true })], "wait"],
  ["the named one has succeeded", ["a"], [check("a", "succeeded"), check("b", "pending")], "deploy"],
  ["another one has failed", ["a"], [check("a", "succeeded"), check("b", "failed")], "deploy"],
  ["one of two with the name has failed", ["a"], [check("a", "succeeded"), check("a", "failed")], "wait"],
  ["a second named one is not there", ["a", "c"], [check("a", "succeeded")], "wait"],
  ["the named one is only more that may follow", ["r"], [check("r", "pending", { isGroup: true })], "wait"],
  ["it is named by its key", ["key"], [{ names: ["#7", "key"], state: "succeeded" }], "deploy"],
  ["the named one was skipped", ["a"], [check("a", "skipped"), check("b", "succeeded")], "deploy"],
  ["it was skipped after a failure", ["a"], [check("a", "skipped"), check("b", "failed")], "wait"],
] as const) {
  test(`with DEPLOY_AFTER=${String(after)}, if ${title}: ${kind}`, async () => {
    const { host, judge } = makeChecks(after);
    await judge(found);
    host.nowMs = 10_000;
    assert.equal((await judge())?.kind ?? "deploy", kind);
  });
}

test("checks that are all green at the first look are asked once more after 10 s", async () => {
  const { host, judge } = makeChecks("all");
  const first = await judge([check("quick", "succeeded")]);
  assert.ok(first?.kind === "wait");
  assert.deepEqual(first.rest, { leastMs: 5_000, mostMs: 10_000 });
  host.nowMs = 10_000;
  assert.equal((await judge([check("quick", "succeeded"), check("slow", "pending")]))?.kind, "wait");
  host.nowMs = 700_000;
  assert.equal(await judge([check("quick", "succeeded"), check("slow", "succeeded")]), null);
});

test("the reason names what is unknown and what is there, bounded and printable", async () => {
  const { judge } = makeChecks(["e2e", "build"]);
  const names = Array.from({ length: 50 }, (_, index) => `job ${index}\u001b[31m${"x".repeat(99)}`);
  const many = names.map((name) => check(name, "succeeded"));
  const { reason } = (await judge([check("build", "succeeded"), ...many])) ?? assert.fail();
  assert.match(reason, /no check that is named e2e\. It has build, job 0.* and 43 more\. .*DEPLOY_AFTER/);
  assert.ok(reason.length < 800 && !reason.includes("\u001b"));
});

test("after an hour a head is skipped with its reason, and is found when it turns green", async () => {
  const { host, checks, judge } = makeChecks(["a"]);
  assert.equal((await judge([check("a", "failed")]))?.kind, "wait");
  host.nowMs = hourMs - 1;
  assert.equal((await judge())?.kind, "wait");
  assert.deepEqual(checks.givenUp(), []);
  host.nowMs = hourMs;
  const decision = (await judge()) ?? assert.fail();
  assert.equal(decision.kind, "skipped");
  assert.match(decision.reason, /not succeeded: a\..*an hour.*hotpush deploy main/);
  assert.deepEqual(checks.givenUp(), [ref]);
  assert.equal(await judge([check("a", "succeeded")]), null);
  assert.deepEqual(checks.givenUp(), []);
});

test("a host that does not say is waited for as long as it asks, and its fault is the reason", async () => {
  const { host, judge } = makeChecks("all");
  host.reading = { kind: "fault", fault: "the token may not read them (403).", waitMs: 90_000 };
  const decision = await judge();
  assert.ok(decision?.kind === "wait");
  assert.deepEqual(decision.rest, { leastMs: 90_000, mostMs: 90_000 });
  host.nowMs = hourMs;
  assert.match((await judge())?.reason ?? "", /the token may not read them \(403\)\..*an hour/);
});

test("[skip deploy] on a commit after one that never turned green does not cover both", async (t) => {
  const { checks, host } = makeChecks(["a"]);
  const resolving = makeResolving(t, { checks });
  host.reading = { kind: "checks", checks: [check("a", "succeeded")] };
  resolving.deliver(resolving.project.commit());
  await resolving.deploys();
  host.reading = { kind: "checks", checks: [check("a", "failed")] };
  const red = resolving.project.commit();
  resolving.deliver(red);
  await resolving.next();
  host.nowMs += hourMs;
  assert.equal((await resolving.next()).kind, "skipped");
  host.reading = { kind: "checks", checks: [check("a", "succeeded")] };
  const head = resolving.project.push("[skip deploy] words");
  resolving.deliver(head, { before: red as never });
  assert.equal(await resolving.deploys(), head);
});
