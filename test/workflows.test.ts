import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";

const directory = join(import.meta.dirname, "../.github/workflows");
const texts = new Map(
  readdirSync(directory).map((name) => [name, readFileSync(join(directory, name), "utf8")]),
);
const textOf = (name: string) => texts.get(name) ?? "";

test("the checks that others wait for are those of .ci/run, never skipped or ignored", () => {
  const text = textOf("check.yml");
  assert.equal(text.match(/^ +- run: sudo .* bash \.ci\/run$/gm)?.length, 1);
  assert.doesNotMatch(text, /continue-on-error|\bif:/);
});

test("the package and the image are published only after all checks", () => {
  for (const name of ["ci.yml", "release.yml"]) {
    const { jobs }: { jobs: Record<string, { needs?: string; uses?: string }> } = parse(textOf(name));
    const { check, publish, ...others } = jobs;
    assert.equal(check?.uses, "./.github/workflows/check.yml");
    // `publish` also compares the tag with the version.
    assert.equal((publish ?? { needs: "check" }).needs, "check");
    for (const { needs } of Object.values(others)) assert.equal(needs, publish ? "publish" : "check");
    assert.doesNotMatch(textOf(name), /always\(\)|cancelled\(\)|failure\(\)/);
  }
  const publishing = [...texts].filter(([, text]) => text.includes("npm publish"));
  assert.equal(publishing.map(([name]) => name).join(), "release.yml");
});

test("the image is published by callers only, never by a push, a tag or a pull request", () => {
  const text = textOf("image.yml");
  assert.match(text, /^on:\n {2}workflow_call:\n {2}pull_request:\n {4}paths: .*\n\S/m);
  assert.equal(text.match(/\bpush:/g)?.length, 1);
  assert.match(text, /\bpush: \$\{\{ github\.event_name != 'pull_request' \}\}$/m);
});

test("every third-party action is pinned to a commit", () => {
  for (const [, text] of texts)
    for (const [, action = ""] of text.matchAll(/uses: (\S+)/g)) assert.match(action, /^\.\/|@[0-9a-f]{40}$/);
});
