import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { checks } from "../../src/doctor/checks.ts";

const page = readFileSync(new URL("../../docs/troubleshooting.md", import.meta.url), "utf8");

test("docs/troubleshooting.md has one entry per check, in the report's order", () => {
  const entries = [...page.matchAll(/^### `([\w-]+)`$/gm)].map(([, id]) => id);
  assert.deepEqual(
    entries,
    checks.map(({ id }) => id),
  );
});

test("every entry of docs/troubleshooting.md has a symptom, a cause and a fix", () => {
  for (const { id, group } of checks) {
    const section = page.split(`\n## ${group}\n`)[1]?.split("\n## ")[0] ?? "";
    const entry = section.split(`### \`${id}\`\n`)[1]?.split("\n### ")[0] ?? "";
    assert.match(entry, /^\n\*\*Symptom\.\*\* .+\n\*\*Cause\.\*\* .+\n\*\*Fix\.\*\* /s, id);
  }
});
