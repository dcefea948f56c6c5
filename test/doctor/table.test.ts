import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { checks } from "../../src/doctor/examine.ts";

const root = join(import.meta.dirname, "..");
const files = globSync(["doctor/*.ts", "e2e/server-page.test.ts"], { cwd: root });
const tests = files
  .filter((file) => file !== "doctor/table.test.ts")
  .map((file) => readFileSync(join(root, file), "utf8"))
  .join("\n");

/** A person has to correct what is in a file, at the git host or in DNS. */
const forPeople = ["caddy", "commit-status", "missed", "public-url"];

test("every check is named in a test, if a command can be its fix", () => {
  const ids = checks.map(({ id }) => id);
  assert.deepEqual([...new Set(ids)], ids);
  const isNamed = (id: string) =>
    tests.includes(`"${id}"`) || new RegExp(`test\\(\\s*"[^"]*\\b${id}\\b`).test(tests);
  assert.deepEqual(
    ids.filter((id) => !isNamed(id) && !forPeople.includes(id)),
    [],
  );
});
