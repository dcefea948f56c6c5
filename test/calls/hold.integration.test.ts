import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { openHold } from "../../src/calls/client.ts";
import type { WholeStatusJson } from "../../src/calls/shapes.ts";
import { githubPush } from "../harness/delivery.ts";
import { hotpush, hotpushJson } from "../harness/hotpush.ts";
import { pushTo, startProjects, waitsForGo } from "../harness/machine.ts";
import type { Scope } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const request = { reason: "a test", requestedBy: "ada" };

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

test("a holder that is killed leaves no hold behind", async (t) => {
  const { service } = await startProjects(t, { shop: "true" });
  const client = join(import.meta.dirname, "../../src/calls/client.ts");
  const program = `
    const { openHold } = await import(${JSON.stringify(client)});
    const signal = new AbortController().signal;
    for await (const { event } of openHold(${JSON.stringify(service.statePath)}, {reason: "a test"}, signal))
      console.log(event);`;
  const holder = spawn(process.execPath, ["--input-type=module", "--eval", program]);
  t.after(() => holder.kill("SIGKILL"));
  const [printed]: Buffer[] = await once(holder.stdout, "data");
  assert.equal(String(printed), "quiet\n");
  await pushTo(service, "shop");
  const isHeld = async () => (await hotpushJson<WholeStatusJson>(service, "status")).hold !== null;
  assert.equal(await isHeld(), true);
  holder.kill("SIGKILL");
  await service.log.waitFor(({ event }) => event === "deployment.succeeded");
  await until("the hold is over", async () => !(await isHeld()));
});

function hold(scope: Scope, statePath: string) {
  const control = new AbortController();
  scope.after(() => control.abort());
  return { events: openHold(statePath, request, control.signal), release: () => control.abort() };
}
