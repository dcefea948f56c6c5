import assert from "node:assert/strict";
import { test } from "node:test";
import { exitCodeOf, type ProblemCode, problems } from "../src/problems.ts";

type Entry = { readonly title: string; readonly status?: number; readonly exitCode?: number };

const entries = Object.entries(problems) as [ProblemCode, Entry][];

test("every code is snake case, and every title is unique, a sentence without its full stop", () => {
  for (const [code, { title }] of entries) {
    assert.match(code, /^[a-z]+(_[a-z]+)*$/);
    assert.match(title, /^[A-Z].{8,60}[^.!?\s]$/, title);
  }
  assert.equal(new Set(entries.map(([, { title }]) => title)).size, entries.length);
});

test("every status is an error, and none makes a git host give up or follow a redirect", () => {
  for (const [code, { status }] of entries) {
    if (status === undefined) continue;
    assert(status >= 400 && status < 600, code);
    assert(![410, 429, 502, 504].includes(status), code);
  }
});

test("the exit code is 78 for a configuration error and 70 otherwise", () => {
  const named = entries.filter(([, { exitCode }]) => exitCode !== undefined).map(([code]) => code);
  for (const code of named) assert([70, 78].includes(exitCodeOf(code)), code);
  assert.equal(exitCodeOf("configuration_invalid"), 78);
  assert.equal(exitCodeOf("internal_error"), 70);
  assert.equal(exitCodeOf("script_missing"), 70);
});
