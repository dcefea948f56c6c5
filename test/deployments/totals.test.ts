import assert from "node:assert/strict";
import { test } from "node:test";
import { recordPush } from "../../src/deployments/queue.ts";
import { claimNext, listTotals, transition } from "../../src/deployments/store.ts";
import type { Store } from "../../src/platform/sqlite.ts";
import { pushOf, temporaryStore } from "../harness/store.ts";

test("a run counts once with its result and length, and stays when its deployment is pruned", (t) => {
  const store = temporaryStore(t);
  deploy(store, 12_000);
  deploy(store, 700);
  store.transaction(() => store.run("DELETE FROM deployments"));
  const totals = totalsIn(store);
  const run = (part: string) => totals.get(`cicd_pipeline_run_duration_seconds_${part}`);
  assert.equal(run('count{cicd_pipeline_result="success"}'), 2);
  assert.equal(run('bucket{cicd_pipeline_result="success",le="1"}'), 1);
  assert.equal(run('bucket{cicd_pipeline_result="success",le="20"}'), 2);
  assert.equal(run('bucket{cicd_pipeline_result="success",le="+Inf"}'), 2);
  assert.ok(Math.abs((run('sum{cicd_pipeline_result="success"}') ?? 0) - 12.7) < 0.5);
  assert.equal(totals.get("hotpush_push_to_live_seconds_count{}"), 2);
});

test("a failure counts with the code of its problem, and is not live", (t) => {
  const store = temporaryStore(t);
  deploy(store, 1_000, "failed");
  const totals = totalsIn(store);
  assert.equal(totals.get('cicd_pipeline_run_errors_total{error_type="script_failed"}'), 1);
  assert.equal(totals.get('cicd_pipeline_run_duration_seconds_count{cicd_pipeline_result="failure"}'), 1);
  assert.equal(totals.get("hotpush_push_to_live_seconds_count{}"), undefined);
});

test("the requests of a roll-out are added up over all hosts", (t) => {
  const store = temporaryStore(t);
  const counted = { brokeOff: 0, left: 0, before: none, after: none };
  const requests = [
    { host: "a.example.org", requests: 100, failed: 2, ...counted },
    { host: "b.example.org", requests: 50, failed: 0, ...counted },
  ];
  deploy(store, 1_000, "succeeded", JSON.stringify(requests));
  const totals = totalsIn(store);
  assert.equal(totals.get("hotpush_rollout_requests_total{}"), 150);
  assert.equal(totals.get("hotpush_rollout_failed_requests_total{}"), 2);
});

test("a deployment that was never started counts nowhere", (t) => {
  const store = temporaryStore(t);
  store.transaction(() => {
    const { id } = recordPush(store, pushOf()).deployment;
    transition(store, { id, state: "queued" }, "cancelled");
  });
  assert.deepEqual(listTotals(store), []);
});

const none = { answers: 0, serverErrors: 0 };

/** A deployment that has run for `durationMs`. */
function deploy(
  store: Store,
  durationMs: number,
  state: "succeeded" | "failed" = "succeeded",
  requests: string | null = null,
): void {
  store.transaction(() => {
    recordPush(store, pushOf());
    const running = claimNext(store) ?? assert.fail();
    const sql = "UPDATE deployments SET started_at_ms = ?, requests = ? WHERE id = ?";
    store.run(sql, Date.now() - durationMs, requests, running.id);
    const problem = state === "failed" ? ({ code: "script_failed", detail: "" } as const) : null;
    transition(store, running, state, { problem });
  });
}

function totalsIn(store: Store): ReadonlyMap<string, number> {
  return new Map(listTotals(store).map(({ name, labels, value }) => [`${name}{${labels}}`, value]));
}
