import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";

const directory = join(import.meta.dirname, "../.github/workflows");
const texts = readdirSync(directory).map((name) => readFileSync(join(directory, name), "utf8"));

interface Job {
  readonly needs?: string;
  readonly uses?: string;
  readonly steps?: readonly { readonly run?: string; readonly with?: { readonly push?: unknown } }[];
}

interface Workflow {
  readonly on: Readonly<Record<string, unknown>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

function workflow(name: string): Workflow {
  return parse(readFileSync(join(directory, name), "utf8"));
}

test("the checks that others wait for are those of .ci/run, never skipped or ignored", () => {
  const { jobs } = workflow("check.yml");
  const commands = Object.values(jobs).flatMap(({ steps = [] }) => steps.map(({ run }) => run ?? ""));
  assert.equal(commands.filter((command) => /^sudo .* bash \.ci\/run$/.test(command)).length, 1);
  assert.doesNotMatch(JSON.stringify(jobs), /"continue-on-error"|"if":/);
});

test("the package is published only after all checks", () => {
  const { jobs } = workflow("release.yml");
  const publishing = Object.values(jobs).filter(({ steps = [] }) =>
    steps.some(({ run = "", with: inputs }) => run.startsWith("npm publish") || inputs?.push !== undefined),
  );
  assert.equal(publishing.length, 1);
  for (const job of publishing) {
    assert.equal(jobs[job.needs ?? ""]?.uses, "./.github/workflows/check.yml");
    assert.doesNotMatch(JSON.stringify(job), /always\(\)|cancelled\(\)|failure\(\)/);
  }
});

test("the image is published by callers only, never by a push, a tag or a pull request", () => {
  const { on, jobs } = workflow("image.yml");
  assert.deepEqual(Object.keys(on), ["workflow_call", "pull_request"]);
  const pushes = Object.values(jobs).flatMap(({ steps = [] }) =>
    steps.flatMap((step) => step.with?.push ?? []),
  );
  assert.equal(pushes.length, 1);
  assert.match(String(pushes[0]), /^\$\{\{ github\.event_name != 'pull_request' \}\}$/);
});

test("every third-party action is pinned to a commit", () => {
  for (const text of texts)
    for (const [, action = ""] of text.matchAll(/uses: (\S+)/g)) assert.match(action, /^\.\/|@[0-9a-f]{40}$/);
});
