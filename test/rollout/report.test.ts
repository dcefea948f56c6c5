import assert from "node:assert/strict";
import { test } from "node:test";
import {
  outcomeOf,
  type RolloutEvent,
  ranOutcome,
  reportJson,
  reportText,
  timed,
  unchangedOutcome,
} from "../../src/rollout/report.ts";
import { countingLines } from "../../src/rollout/requests.ts";

/** The lines of `events`, as a person sees them. */
function linesOf(...events: readonly RolloutEvent[]): readonly string[] {
  let text = "";
  const report = reportText((written) => {
    text += written;
  });
  for (const event of events) report(event);
  return text.split("\n").slice(0, -1);
}

const old = [{ name: "shop-app-3" }];
const fresh = [{ name: "shop-app-4" }];
const seen = { healthyAfterMs: 2_140, drainedMs: 510 };
const app = { name: "app" };

const both = { old, new: fresh };
const recreated = { ...seen, drainedMs: null, downtimeMs: 4_100, reason: "publishes port 5432" };
const outcomes = [
  outcomeOf(app, "rolled", both, seen),
  outcomeOf(app, "recreated", both, recreated),
  outcomeOf(app, "rolled", both, { healthyAfterMs: 2_140 }),
  outcomeOf(app, "started", { new: fresh }, {}),
  outcomeOf(app, "removed", { old }),
  outcomeOf(app, "skipped", {}),
  ranOutcome(app, []),
  unchangedOutcome(app, old),
];

test("the end says of each service how it was replaced, and for how long it was down", () => {
  for (const one of outcomes) {
    const text = linesOf({ event: "finished", durationMs: 900, services: [one] }).join(" ");
    assert.match(text, new RegExp(`app +${one.outcome}`));
    for (const fact of one.outcome === "unchanged" ? [] : [...one.old, ...one.new, one.reason ?? ""])
      assert.ok(text.includes(fact), text);
  }
});

const names = ["storefront-production-web-frontend-12", "storefront-production-web-frontend-13"];
const web = { name: "web-frontend-production" };
const longWord = "https://registry.example.org/".repeat(6);
const sentence = `It is ${"rather long, ".repeat(20)}and has ${longWord} in it.`;
const site = {
  host: "www.storefront.example.org",
  requests: 12_431,
  failed: 12,
  brokeOff: 3,
  left: 4_000,
  before: { answers: 1_000, serverErrors: 1 },
  after: { answers: 1_000, serverErrors: 2 },
};

const wide: readonly RolloutEvent[] = [
  { event: "started", project: "storefront", commit: "1".repeat(40), services: [...names, ...names] },
  { event: "step", service: web.name, step: "roll back", durationMs: 3_599_000, detail: names.join(", ") },
  { event: "step", service: null, step: "tag", durationMs: 1, detail: longWord },
  { event: "note", service: web.name, text: sentence },
  { event: "guarding", service: names.join("-"), guardMs: 10_000 },
  { event: "requests", sites: [site], missingLines: [] },
  { event: "requests", sites: null, missingLines: countingLines("/run/live", null) },
  { event: "requests", sites: null, missingLines: [] },
  { event: "requests", sites: [], missingLines: [] },
  {
    event: "finished",
    durationMs: 1,
    services: outcomes.map((one) => ({ ...one, service: web.name, old: names, new: names })),
  },
];

test("no line is wider than 80 columns, but for a word, which can be copied", () => {
  for (const line of linesOf(...wide)) assert.ok(line.length <= 80 || line.includes(longWord), line);
});

test("a failure is told in one line, which the history quotes", () => {
  const failed = { event: "failed", code: "version_worse", detail: sentence, evidence: [] } as const;
  assert.deepEqual(linesOf(failed), ["", `FAILED: ${sentence}`]);
});

test("output of a container cannot control the terminal, and is not broken", () => {
  const red = "\u001b]0;owned\u0007\u001b[31mred\u001b[0m\u0008\u0000";
  const evidence = [red, "x".repeat(200)];
  const lines = linesOf({ event: "failed", code: "container_not_healthy", detail: "No.", evidence });
  assert.deepEqual(lines, ["", "FAILED: No.", "    red", `    ${"x".repeat(200)}`]);
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
