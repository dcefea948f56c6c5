import assert from "node:assert/strict";
import { test } from "node:test";
import { outcomeTable, reportJson, reportText } from "../../src/rollout/format.ts";
import {
  outcomeOf,
  type RolloutEvent,
  ranOutcome,
  timed,
  unchangedOutcome,
} from "../../src/rollout/report.ts";

test("the closing table shows the outcome of each service", () => {
  const rolled = {
    service: "app",
    outcome: "rolled",
    old: ["shop-app-3"],
    new: ["shop-app-4"],
    healthyAfterMs: 2_140,
    drainedMs: 510,
    downtimeMs: 0,
    reason: "at the proxy",
  } as const;
  const recreated = {
    ...rolled,
    service: "db",
    outcome: "recreated",
    old: ["shop-db-1"],
    new: ["shop-db-1"],
    drainedMs: null,
    downtimeMs: 4_100,
    reason: "publishes port 5432",
  } as const;
  const first = {
    ...rolled,
    service: "worker",
    outcome: "started",
    old: [],
    drainedMs: null,
    downtimeMs: null,
    reason: null,
  } as const;
  const direct = {
    ...rolled,
    service: "api",
    drainedMs: null,
    downtimeMs: null,
    reason: "not behind the proxy",
  } as const;
  assert.deepEqual(
    outcomeTable([rolled, recreated, first, direct, unchangedOutcome({ name: "cache" }, [])]),
    [
      "Service  Old → new                 Healthy after  Drained  Downtime",
      "───────  ────────────────────────  ─────────────  ───────  ───────────────────────────",
      "app      shop-app-3 → shop-app-4   2.1 s          510 ms   none (at the proxy)",
      "db       shop-db-1 → shop-db-1     2.1 s          -        4.1 s (publishes port 5432)",
      "worker   shop-app-4 (first start)  2.1 s          -        -",
      "api      shop-app-3 → shop-app-4   2.1 s          -        not behind the proxy",
      "cache    unchanged                 -              -        -",
    ],
  );
});

test("the closing table shows which one-shot services ran or were left out", () => {
  const rows = outcomeTable([
    ranOutcome({ name: "migrate" }, []),
    outcomeOf({ name: "seed" }, "skipped", {}),
  ]);
  assert.match(rows.at(-2) ?? "", /^migrate +ran to its end +-/);
  assert.match(rows.at(-1) ?? "", /^seed +not run in a roll back +-/);
});

test("a step is a line with its duration", () => {
  const lines: string[] = [];
  const step = {
    event: "step",
    service: "app",
    step: "drain",
    durationMs: 510,
    detail: "no request is left",
  } as const;
  reportText((line) => lines.push(line))(step);
  assert.deepEqual(lines, ["  app            drain          510 ms  no request is left\n"]);
});

test("output of a container cannot control the terminal", () => {
  const lines: string[] = [];
  const evidence = ["\u001b]0;owned\u0007\u001b[31mred\u001b[0m\u0008\u0000"];
  reportText((line) => lines.push(line))({
    event: "failed",
    code: "container_not_healthy",
    detail: "No.",
    evidence,
  });
  assert.equal(lines.join(""), "\nFAILED: No.\n    red\n");
});

test("as JSON, each event is a line with its time", () => {
  const lines: string[] = [];
  reportJson((line) => lines.push(line))({ event: "note", service: null, text: "two\nlines" });
  assert.equal(lines.length, 1);
  const { at, ...event } = JSON.parse(lines[0] ?? "");
  assert.deepEqual(event, { event: "note", service: null, text: "two\nlines" });
  assert.ok(Date.parse(at) > 0);
});

test("a step that fails is reported too", async () => {
  const events: RolloutEvent[] = [];
  const fails = () => Promise.reject(new Error("no"));
  await assert.rejects(timed({ report: (event) => events.push(event) }, "healthy", fails, String));
  const [event] = events;
  assert.ok(event?.event === "step" && event.step === "healthy" && event.detail === "FAILED");
});
