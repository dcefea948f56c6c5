import assert from "node:assert/strict";
import { test } from "node:test";
import type { Container } from "../../../src/platform/docker/containers.ts";
import { type Engine, EngineRefusal } from "../../../src/platform/docker/engine.ts";
import {
  isStillReady,
  readinessOf,
  startProbing,
  withOwnHealth,
} from "../../../src/platform/docker/health.ts";
import { until } from "../../harness/until.ts";
import { sampleContainer } from "../../rollout/sample.ts";

const cases: readonly (readonly [string, Partial<Container>, number, RegExp | null])[] = [
  ["healthy", {}, 0, /^healthy$/],
  ["starting", { health: "starting" }, 100, null],
  ["starting for too long", { health: "starting" }, 60_001, /after 1 min \(last: starting\)$/],
  ["unhealthy", { health: "unhealthy" }, 100, /^is unhealthy/],
  ["ended", { status: "exited", exitCode: 3 }, 100, /^ended with exit code 3/],
  ["ended as it may", { status: "exited", exitCode: 0 }, 100, /^ended$/],
  ["restarting", { status: "restarting" }, 100, /^crashed/],
  ["healthy after a restart", { restartCount: 1 }, 100, /^crashed/],
  ["created, not started", { status: "created", health: null }, 100, null],
  ["without a health check, just started", { health: null }, 100, null],
  ["without a health check, steady", { health: null }, 3_000, /^steady$/],
];

test("a container is ready, has failed or is waited for, as its state says", () => {
  for (const [situation, container, waitedMs, says] of cases) {
    const options = { waitedMs, timeoutMs: 60_000, mayEnd: true, hasPassed: false };
    const found = readinessOf(sampleContainer(container), options);
    if (says === null) assert.equal(found, null, situation);
    else assert.match(typeof found === "string" ? found : String(found?.fault), says, situation);
  }
});

test("a ready container stays ready until it is unhealthy, was restarted or has ended", () => {
  for (const container of [{ health: "starting" }, { health: null }] as const)
    assert.ok(isStillReady(sampleContainer(container)));
  for (const container of [{ health: "unhealthy" }, { restartCount: 1 }, { status: "exited" }] as const)
    assert.ok(!isStillReady(sampleContainer(container)));
});

/** An engine with one container, whose health check ends with each of `exitCodes` in turn; null: it is refused. */
function engineOf(exitCodes: readonly (number | null)[]) {
  const commands: unknown[] = [];
  const json = async (body: object) => Buffer.from(JSON.stringify(body));
  const exitCode = () => exitCodes[Math.min(commands.length, exitCodes.length) - 1];
  const Config = { Healthcheck: { Test: ["CMD", "./check", "-q"] } };
  const engine: Engine = {
    get: (path) =>
      json(path.startsWith("/exec/") ? { ExitCode: exitCode() } : { Name: "/app", State: {}, Config }),
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
  const { engine, commands } = engineOf([null, 1, 0]);
  const probing = startProbing(engine, "id");
  assert.equal(probing.hasPassed(), false);
  await until("the check passes", probing.hasPassed);
  assert.deepEqual(commands, Array(3).fill(["./check", "-q"]));
});

test("only running containers are asked that Docker has not checked", async () => {
  const starting = sampleContainer({ health: "starting", healthCommand: ["./check"] });
  const others = [
    sampleContainer({ health: "starting" }),
    sampleContainer({ ...starting, health: "unhealthy" }),
    sampleContainer({ ...starting, status: "exited" }),
  ];
  for (const [exitCode, health] of [
    [0, "healthy"],
    [1, "starting"],
  ] as const) {
    const { engine, commands } = engineOf([exitCode]);
    const [first, ...rest] = await withOwnHealth(engine, [starting, ...others]);
    assert.deepEqual([first?.health, rest, commands], [health, others, [["./check"]]]);
  }
});
