import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const root = join(import.meta.dirname, "../..");
const page = readFileSync(join(root, "SECURITY.md"), "utf8");
const threats = page.slice(page.indexOf("\n## A stolen webhook secret"), page.indexOf("\n## What is fuzzed"));
const reference = /`(test\/[\w./-]+\.test\.ts)`: "([^"\n]+)"/g;

test("every test that SECURITY.md names exists", () => {
  const named = [...page.matchAll(reference)];
  assert.ok(named.length >= 40, `only ${named.length} found`);
  // No reference is passed over because it is written in another way.
  assert.equal(named.length, page.match(/`test\//g)?.length);
  for (const [, path = "", name = ""] of named) {
    assert.ok(existsSync(join(root, path)), `${path} is not there`);
    const source = readFileSync(join(root, path), "utf8");
    assert.ok(testNames(source).includes(name), `${path} has no test "${name}"`);
  }
});

test("every promise of SECURITY.md names its test", () => {
  const lines = threats.split(/\n(?=- )/).filter((line) => line.startsWith("- "));
  assert.ok(lines.length >= 25, `only ${lines.length} found`);
  for (const line of lines) {
    // These state a limit, not a promise.
    const isLimit = /^- \*\*(?:Can |It can |Controls |A secret that|Anyone who can write)/.test(line);
    assert.ok(isLimit || /`test\//.test(line), line);
  }
});

/** The names in a file of tests, as far as they are written out. */
function testNames(source: string): readonly string[] {
  return [...source.matchAll(/\b(?:test|fuzz)\(\s*(["`])(.*?)\1\s*,/g)].map(([, , name = ""]) => name);
}
