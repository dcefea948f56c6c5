import assert from "node:assert/strict";
import { test } from "node:test";
import {
  defaultHealthyTimeoutMs,
  durationLabelMs,
  parseGoDurationMs,
  readProject,
} from "../../../src/rollout/compose/project.ts";
import { isProblem } from "../../harness/is-problem.ts";

test("Go's durations are read", () => {
  assert.equal(parseGoDurationMs("1m30s"), 90_000);
  assert.equal(parseGoDurationMs("500ms"), 500);
  assert.equal(parseGoDurationMs("1h0m0.5s"), 3_600_500);
  for (const text of ["", "5", "5 s", "s", "1m-3s"]) assert.equal(parseGoDurationMs(text), null, text);
});

test("the time-out is a minute without a health check, or with a quick one", () => {
  assert.equal(defaultHealthyTimeoutMs(undefined), 60_000);
  assert.equal(defaultHealthyTimeoutMs({ interval: "1s", timeout: "1s", start_period: "5s" }), 60_000);
});

test("the time-out covers a long start period, and Docker's own verdict", () => {
  const healthcheck = { start_period: "2m", interval: "10s", timeout: "5s", retries: 4 };
  assert.equal(defaultHealthyTimeoutMs(healthcheck), 120_000 + 4 * 15_000 + 10_000);
});

test("a new version is guarded for 10 s, or as the label says, and not at all with 0", () => {
  const guardOf = (labels: Readonly<Record<string, string>>) =>
    readProject({ name: "shop", services: { app: { labels } } }).services[0]?.guardMs;
  assert.deepEqual(
    [{}, { "hotpush.guard": "1m" }, { "hotpush.guard": "0" }].map(guardOf),
    [10_000, 60_000, 0],
  );
  assert.throws(
    () => guardOf({ "hotpush.guard": "long" }),
    isProblem("compose_invalid", /hotpush\.guard is "long"/),
  );
});

const label = "hotpush.healthy-timeout";

test("a label with a duration is read, and one that is absent is null", () => {
  assert.equal(durationLabelMs({ labels: { [label]: "90s" } }, label), 90_000);
  assert.equal(durationLabelMs({ labels: {} }, label), null);
  assert.equal(durationLabelMs({}, label), null);
});

for (const text of ["90", "0s", "", "soon"]) {
  test(`"${text}" is refused`, () => {
    const refused = isProblem(
      "compose_invalid",
      /hotpush\.healthy-timeout is ".*", not a duration such as 90s/,
    );
    assert.throws(() => durationLabelMs({ labels: { [label]: text } }, label), refused);
  });
}
