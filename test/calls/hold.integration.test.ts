import assert from "node:assert/strict";
import { test } from "node:test";
import { followRun } from "../../src/calls/client.ts";
import type { WholeStatusJson } from "../../src/calls/shapes.ts";
import { githubPush } from "../harness/delivery.ts";
import { hotpush, hotpushJson } from "../harness/hotpush.ts";
import { pushTo, startProjects, waitsForGo } from "../harness/machine.ts";
import type { Scope } from "../harness/temporary.ts";

test("a hold waits for what runs, and nothing starts until its connection ends", async (t) => {
  const { service, go } = await startProjects(t, { shop: waitsForGo, blog: "true" });
  await pushTo(service, "shop");
  await service.log.waitFor(({ event }) => event === "deployment.step" || event === "deployment.started");
  const { events, release } = hold(t, service.statePath);
  const first = (await events.next()).value;
  assert.equal(first?.event, "waiting");
  assert.deepEqual(first?.event === "waiting" && first.running.map(({ project }) => project), ["shop"]);
  await pushTo(service, "blog", githubPush({ after: "b".repeat(40) }));
  const target = { ...service, cwd: "/" };
  const { stdout } = await hotpush(target, "status");
  assert.match(stdout, /\nHeld +no deployment starts since .+, by ada \(reported\): a\s+test\n/);
  go("shop");
  assert.equal((await events.next()).value?.event, "quiet");
  const { waiting, running, hold: held } = await hotpushJson<WholeStatusJson>(target, "status");
  assert.deepEqual([waiting.map(({ project }) => project), running], [["blog"], []]);
  assert.partialDeepStrictEqual(held, { reason: "a test", by: { name: "ada" } });
  release();
  await service.log.waitFor(({ event, project }) => event === "deployment.succeeded" && project === "blog");
  assert.equal((await hotpushJson<WholeStatusJson>(target, "status")).hold, null);
});

function hold(scope: Scope, statePath: string) {
  const control = new AbortController();
  scope.after(() => control.abort());
  const options = { requestedBy: "ada", signal: control.signal };
  const events = followRun(statePath, "hold", { reason: "a test" }, options);
  return { events, release: () => control.abort() };
}
