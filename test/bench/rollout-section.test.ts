import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { renderDocument } from "../../bench/document.ts";
import { rolloutSectionOf, withRolloutSection } from "../../bench/rollout/section.ts";

const page = readFileSync(new URL("../../docs/performance.md", import.meta.url), "utf8");

test("bench:rollout replaces its own section of the page and leaves every other byte", () => {
  const once = withRolloutSection(page, "## Roll-out\n\n$& | 1 |");
  const twice = withRolloutSection(once, "## Roll-out\n\n| 2 |");
  const own = rolloutSectionOf(once) ?? "";
  assert.match(own, /\$& \| 1 \|/);
  assert.equal(
    twice.replace(rolloutSectionOf(twice) ?? "", () => own),
    once,
  );
  assert.equal(once.match(/## Roll-out$/gm)?.length, 1);
});

test("the bench of the rest writes the section on roll-outs again as it was", () => {
  const before = withRolloutSection(page, "## Roll-out\n\n| 1 |");
  const after = renderDocument([], rolloutSectionOf(before));
  assert.equal(rolloutSectionOf(after), rolloutSectionOf(before));
  assert.ok(after.indexOf("## Roll-out") < after.indexOf("## To repeat it"));
  assert.equal(rolloutSectionOf(renderDocument([], null)), null);
});
