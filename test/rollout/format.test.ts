import assert from "node:assert/strict";
import { test } from "node:test";
import { cleaned } from "../../src/platform/terminal/output.ts";
import { reportLiveLines } from "../../src/rollout/format.ts";
import type { RolloutEvent, RolloutStep } from "../../src/rollout/report.ts";

function step(service: string | null, name: RolloutStep, detail = ""): RolloutEvent {
  return { event: "step", service, step: name, durationMs: 400, detail };
}

/** Up some lines, and erase all below. */
const erasing = new RegExp(`^${String.fromCharCode(27)}\\[(\\d+)A${String.fromCharCode(27)}\\[J([^]*)$`);

/** The lines that a terminal shows after these events. */
function screenOf(columns: number, events: readonly RolloutEvent[]): readonly string[] {
  const rows: string[] = [];
  const report = reportLiveLines((written) => {
    const text = cleaned(written);
    const [, up, rest = text] = erasing.exec(text) ?? [];
    if (up !== undefined) rows.splice(rows.length - Number(up));
    rows.push(...rest.split("\n").slice(0, -1));
  }, columns);
  for (const event of events) report(event);
  return rows;
}

test("each service has one line, which grows with its steps", () => {
  const events = [step("app", "start"), step("api", "start"), step("app", "healthy"), step("api", "healthy")];
  assert.deepEqual(screenOf(80, events), [
    "  app            start 400 ms, healthy 400 ms",
    "  api            start 400 ms, healthy 400 ms",
  ]);
});

test("what concerns all services and notes come above these lines", () => {
  const note: RolloutEvent = { event: "note", service: "api", text: "has two writers" };
  const rows = screenOf(80, [step("app", "start"), note, step(null, "recover", "nothing")]);
  assert.match(rows[0] ?? "", /^ {2}api +note +has two writers$/);
  assert.match(rows[1] ?? "", /recover/);
  assert.deepEqual(rows.slice(2), ["  app            start 400 ms"]);
});

test("a line fits the terminal, with its newest steps", () => {
  const events = [step("app", "start"), step("app", "healthy"), step("app", "stop", "FAILED")];
  const [line = ""] = screenOf(40, events);
  assert.equal(line.length, 39);
  assert.match(line, /^ {2}app +….*stop 400 ms FAILED$/);
});

test("in the end the lines stay, above the result", () => {
  const failed: RolloutEvent = { event: "failed", code: "build_failed", detail: "No.", evidence: [] };
  assert.deepEqual(screenOf(80, [step("app", "start"), failed]), [
    "  app            start 400 ms",
    "",
    "FAILED: No.",
  ]);
});
