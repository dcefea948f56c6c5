import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunAnswer, RunClient } from "../../src/page/run-client.ts";
import { createSharedReads } from "../../src/page/shared-reads.ts";

const visit = { credential: "hps_x", address: "192.0.2.1", agent: "" };
const good: RunAnswer = { kind: "ok", status: 200, value: {} };

test("two hundred pages that are open ask run once a second for each thing that they show", async () => {
  const { run, calls } = makeRun(good);
  let nowMs = 0;
  const { read } = createSharedReads(run, () => nowMs);
  await Promise.all(Array.from({ length: 200 }, () => read(visit, "/projects")));
  nowMs = 999;
  await read(visit, "/projects");
  await read(visit, "/deployments/1");
  assert.deepEqual(calls, ["/projects", "/deployments/1"]);
  nowMs = 1_000;
  await read(visit, "/projects");
  assert.equal(calls.length, 3);
});

test("a refusal is shared with nobody, and what was done is seen at once", async () => {
  const refused = makeRun({ kind: "refused", status: 503, detail: "" });
  const reads = createSharedReads(refused.run);
  await reads.read(visit, "/projects");
  await reads.read(visit, "/projects");
  assert.equal(refused.calls.length, 2);
  const { run, calls } = makeRun(good);
  const { read, forget } = createSharedReads(run);
  await read(visit, "/projects");
  forget();
  await read(visit, "/projects");
  assert.equal(calls.length, 2);
});

test("many different paths are not kept for ever", async () => {
  const { run, calls } = makeRun(good);
  const { read } = createSharedReads(run, () => 0);
  for (let id = 0; id < 1_000; id += 1) await read(visit, `/deployments/${id}`);
  await read(visit, "/deployments/0");
  assert.equal(calls.length, 1_001);
});

function makeRun(answer: RunAnswer) {
  const calls: string[] = [];
  const run: RunClient = {
    async call(_visit, _method, path) {
      calls.push(path);
      return answer;
    },
    open: () => Promise.reject(new Error("not expected")),
  };
  return { run, calls };
}
