import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const directory = join(import.meta.dirname, "../.github/workflows");
const workflows: ReadonlyMap<string, string> = new Map(
  readdirSync(directory).map((name) => [name, readFileSync(join(directory, name), "utf8")]),
);

/** The lines that are indented below `key:`, which is itself indented by `depth` steps. */
function below(text: string, key: string, depth: number): string {
  const indent = "  ".repeat(depth);
  return new RegExp(`^${indent}${key}:\\n((?:${indent}  .*\\n|\\n)*)`, "m").exec(text)?.[1] ?? "";
}

/** The keys of a block whose own indentation is `depth` steps. */
function keysOf(block: string, depth: number): readonly string[] {
  return [...block.matchAll(new RegExp(`^${"  ".repeat(depth)}([\\w-]+):`, "gm"))].map(([, key = ""]) => key);
}

function jobsOf(name: string): ReadonlyMap<string, string> {
  const jobs = below(`${workflows.get(name)}\n`, "jobs", 0);
  return new Map(keysOf(jobs, 1).map((job) => [job, below(jobs, job, 1)]));
}

function triggersOf(name: string): readonly string[] {
  return keysOf(below(workflows.get(name) ?? "", "on", 0), 1);
}

/** Whether it waits until every check has passed, and does not run if they failed. */
function isGated(job: string, jobs: ReadonlyMap<string, string>): boolean {
  const check = /^ {4}needs: ([\w-]+)$/m.exec(job)?.[1] ?? "";
  const isUnconditional = !/always\(\)|cancelled\(\)|failure\(\)/.test(job);
  return isUnconditional && /^ {4}uses: \.\/\.github\/workflows\/check\.yml$/m.test(jobs.get(check) ?? "");
}

/** Jobs that publish by themselves. */
const publishing = /^ +(?:- )?run: npm publish|^ +push: /m;

test("the checks that others wait for are those of .ci/run, never skipped or ignored", () => {
  const text = workflows.get("check.yml") ?? "";
  assert.match(text, /^ {6}- run: sudo .* bash \.ci\/run$/m);
  assert.doesNotMatch(text, /continue-on-error|^ +if:/m);
});

test("the package is published only after all checks", () => {
  const jobs = jobsOf("release.yml");
  for (const job of jobs.values()) assert.ok(!publishing.test(job) || isGated(job, jobs), job);
});

test("the image is published by callers only, never by a push, a tag or a pull request", () => {
  assert.deepEqual(triggersOf("image.yml"), ["workflow_call", "pull_request"]);
  const [job = ""] = jobsOf("image.yml").values();
  assert.match(job, /^ +push: \$\{\{ github\.event_name != 'pull_request' \}\}$/m);
});

test("every third-party action is pinned to a commit", () => {
  for (const [name, text] of workflows) {
    for (const [, action = ""] of text.matchAll(/uses: (\S+)/g)) {
      assert.match(action, /^\.\/|@[0-9a-f]{40}$/, name);
    }
  }
});
