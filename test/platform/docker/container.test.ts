import assert from "node:assert/strict";
import { test } from "node:test";
import { discardContainers } from "../../../src/platform/docker/containers.ts";
import { type Engine, EngineRefusal } from "../../../src/platform/docker/engine.ts";
import { ProblemError } from "../../../src/problems.ts";
import { isProblem } from "../../harness/problems.ts";
import { sampleContainer } from "../../rollout/sample.ts";

const one = sampleContainer({ number: 1 });
const two = sampleContainer({ number: 2 });

test("returns containers that the engine refuses to remove, and removes the others", async () => {
  const { engine, calls } = engineThatKeeps("id-1", new EngineRefusal(500, "device or resource busy"));
  const kept = await discardContainers(engine, [one, two], 5);
  assert.deepEqual(
    kept.map(({ container }) => container),
    [one],
  );
  assert.equal(kept[0]?.reason, "device or resource busy");
  assert.ok(calls.includes("/containers/id-2?force=1"));
});

test("each has its own stop grace period, but no more than the longest", async () => {
  const { engine, calls } = engineThatKeeps("none", new Error("none"));
  await discardContainers(
    engine,
    [sampleContainer({ number: 1, stopGraceS: 600 }), two],
    Number.POSITIVE_INFINITY,
  );
  await discardContainers(engine, [sampleContainer({ number: 3, stopGraceS: 600 })], 10);
  const stops = calls.filter((path) => path.includes("/stop"));
  assert.deepEqual(stops, [
    "/containers/id-1/stop?t=600",
    "/containers/id-2/stop?t=10",
    "/containers/id-3/stop?t=10",
  ]);
});

test("an engine that does not answer is a fault", async () => {
  const gone = new ProblemError({ code: "docker_unreachable", detail: "no answer" });
  const { engine } = engineThatKeeps("id-1", gone);
  await assert.rejects(discardContainers(engine, [one], 5), isProblem("docker_unreachable"));
});

/** An engine that answers `failure` to the removal of the container `id`: a busy mount is hard to make. */
function engineThatKeeps(id: string, failure: Error) {
  const calls: string[] = [];
  const answer = async (path: string) => {
    calls.push(path);
    return Buffer.alloc(0);
  };
  const engine: Engine = {
    get: answer,
    post: answer,
    delete: async (path) => {
      if (path.startsWith(`/containers/${id}?`)) throw failure;
      return answer(path);
    },
  };
  return { engine, calls };
}
