import assert from "node:assert/strict";
import { test } from "node:test";
import type { CommandEnding } from "../../../src/platform/run-command.ts";
import { startInSharedRuns } from "../../../src/rollout/side-by-side/start-containers.ts";

const ended = (code: number): CommandEnding => ({ kind: "exited", code, output: "", lastLines: [] });

/** Runs of compose that fail if `sick` is among their services. */
function watchedRuns(sick?: string) {
  const runs: string[][] = [];
  const start = startInSharedRuns(async (scales) => {
    const services = scales.map(({ service }) => service);
    runs.push(services);
    return ended(sick !== undefined && services.includes(sick) ? 1 : 0);
  });
  const startAll = (...services: readonly string[]) =>
    Promise.all(services.map((service) => start({ service, count: 2 })));
  return { runs, startAll };
}

test("services that start at the same moment share one run of compose", async () => {
  const { runs, startAll } = watchedRuns();
  await startAll("app", "api", "worker");
  assert.deepEqual(runs, [["app", "api", "worker"]]);
});

test("services that come during a run share the next one", async () => {
  const runs: string[][] = [];
  const late: Promise<CommandEnding>[] = [];
  const start = startInSharedRuns(async (scales) => {
    runs.push(scales.map(({ service }) => service));
    if (runs.length === 1) for (const service of ["api", "worker"]) late.push(start({ service, count: 2 }));
    await new Promise(setImmediate);
    return ended(0);
  });
  await start({ service: "app", count: 2 });
  await Promise.all(late);
  assert.deepEqual(runs, [["app"], ["api", "worker"]]);
});

test("if a shared run fails, each has a run of its own, and only the sick one fails", async () => {
  const { runs, startAll } = watchedRuns("api");
  assert.deepEqual(await startAll("app", "api"), [ended(0), ended(1)]);
  assert.deepEqual(runs, [["app", "api"], ["app"], ["api"]]);
});

test("a fault of a run reaches all who share it", async () => {
  const start = startInSharedRuns(async () => Promise.reject(new Error("interrupted")));
  const shared = ["app", "api"].map((service) => start({ service, count: 2 }));
  for (const { status } of await Promise.allSettled(shared)) assert.equal(status, "rejected");
});
