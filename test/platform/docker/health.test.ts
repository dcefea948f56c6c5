import assert from "node:assert/strict";
import { test } from "node:test";
import type { Container } from "../../../src/platform/docker/containers.ts";
import { type Engine, EngineRefusal } from "../../../src/platform/docker/engine.ts";
import {
  isStillReady,
  type Readiness,
  readinessOf,
  startProbing,
  withOwnHealth,
} from "../../../src/platform/docker/health.ts";
import { until } from "../../harness/until.ts";
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

/** An engine with one container, whose health check ends with each of `exitCodes` in turn; null: it is refused. */
function engineOf(check: readonly string[], exitCodes: readonly (number | null)[]) {
  const commands: unknown[] = [];
  const json = async (body: object) => Buffer.from(JSON.stringify(body));
  const exitCode = () => exitCodes[Math.min(commands.length, exitCodes.length) - 1];
  const engine: Engine = {
    get: (path) =>
      path.startsWith("/exec/")
        ? json({ ExitCode: exitCode() })
        : json({ Config: { Healthcheck: { Test: check } } }),
    async post(path, body) {
      if (path.startsWith("/containers/")) commands.push((body as { readonly Cmd: unknown }).Cmd);
      if (exitCode() === null) throw new EngineRefusal(409, "The container does not run.");
      return json({ Id: "exec" });
    },
    delete: () => json({}),
  };
  return { engine, commands };
}

test("a health check is run until it passes", async () => {
  const { engine, commands } = engineOf(["CMD", "./check", "-q"], [null, 1, 0]);
  const probing = startProbing(engine, "id");
  assert.equal(probing.hasPassed(), false);
  await until("the check passes", probing.hasPassed);
  assert.deepEqual(commands, Array(3).fill(["./check", "-q"]));
});

test("only running containers that Docker has not checked are asked", async () => {
  const { engine, commands } = engineOf(["CMD", "./check"], [0]);
  const starting = sampleContainer({ health: "starting" });
  const others = [
    sampleContainer({ health: "unhealthy" }),
    sampleContainer({ status: "exited", health: "starting" }),
  ];
  const [asked, ...left] = await withOwnHealth(engine, [starting, ...others]);
  assert.equal(asked?.health, "healthy");
  assert.deepEqual(left, others);
  assert.equal(commands.length, 1);
});

for (const [what, check, exitCode] of [
  ["fails", ["CMD", "./check"], 1],
  ["is none", ["NONE"], 0],
] as const) {
  test(`a container whose health check ${what} stays as Docker says`, async () => {
    const starting = sampleContainer({ health: "starting" });
    assert.deepEqual(await withOwnHealth(engineOf(check, [exitCode]).engine, [starting]), [starting]);
  });
}
