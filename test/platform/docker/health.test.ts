import assert from "node:assert/strict";
import { test } from "node:test";
import type { Container } from "../../../src/platform/docker/containers.ts";
import { isStillReady, type Readiness, readinessOf } from "../../../src/platform/docker/health.ts";
import { sampleContainer } from "../../rollout/sample.ts";

const unchecked = { health: null } as const;

const cases: readonly (readonly [string, Partial<Container>, number, Readiness["kind"] | null])[] = [
  ["healthy", {}, 0, "ready"],
  ["starting", { health: "starting" }, 100, null],
  ["starting for too long", { health: "starting" }, 60_001, "late"],
  ["unhealthy", { health: "unhealthy" }, 100, "unhealthy"],
  ["ended", { status: "exited", exitCode: 3 }, 100, "ended"],
  ["restarting", { status: "restarting" }, 100, "restarting"],
  ["healthy after a restart", { restartCount: 1 }, 100, "restarting"],
  ["created, not started", { status: "created", health: null }, 100, null],
  ["without a health check, just started", unchecked, 100, null],
  ["without a health check, steady", unchecked, 3_000, "ready"],
];

for (const [situation, container, waitedMs, kind] of cases) {
  test(`a container that is ${situation} is ${kind ?? "waited for"}`, () => {
    assert.equal(readinessOf(sampleContainer(container), waitedMs, 60_000)?.kind ?? null, kind);
  });
}

test("a container whose health check passes is ready, though Docker has not run it yet", () => {
  const container = sampleContainer({ health: "starting" });
  assert.deepEqual(readinessOf(container, 0, 60_000, true), { kind: "ready", hasHealthCheck: true });
});

for (const [situation, container, isStill] of [
  ["whose health check Docker has not run", { health: "starting" }, true],
  ["without a health check", { health: null }, true],
  ["that became unhealthy", { health: "unhealthy" }, false],
  ["that was restarted", { restartCount: 1 }, false],
  ["that has ended", { status: "exited" }, false],
] as const) {
  test(`a ready container ${situation} ${isStill ? "is still" : "is no longer"} ready`, () => {
    assert.equal(isStillReady(sampleContainer(container)), isStill);
  });
}

test("a container that somebody removed is gone", () => {
  assert.deepEqual(readinessOf(null, 0, 60_000), { kind: "gone" });
});
