import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { problems } from "../../src/problems.ts";

const page = readFileSync(new URL("../../docs/problems.md", import.meta.url), "utf8");
const rows = [...page.matchAll(/^\| `(\w+)` \| (?:(\d{2,3}) \| )?/gm)].map(([, code, number]) => ({
  code,
  number,
}));

test("docs/problems.md has every problem of the catalogue, once, in its order, and no other", () => {
  assert.deepEqual(
    rows.map(({ code }) => code),
    Object.keys(problems),
  );
});

test("docs/problems.md gives the status or exit code that the catalogue gives", () => {
  for (const [code, entry] of Object.entries(problems)) {
    const number = "status" in entry ? entry.status : "exitCode" in entry ? entry.exitCode : undefined;
    assert.equal(rows.find((row) => row.code === code)?.number, number?.toString(), code);
  }
});
