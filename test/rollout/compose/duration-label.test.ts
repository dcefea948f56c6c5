import assert from "node:assert/strict";
import { test } from "node:test";
import { durationLabelMs } from "../../../src/rollout/compose/duration-label.ts";
import { isProblem } from "../../harness/is-problem.ts";

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
