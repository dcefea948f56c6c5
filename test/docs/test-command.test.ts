import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { temporaryDirectory } from "../harness/temporary.ts";

const root = join(import.meta.dirname, "../..");

test("npm test exits with 0 if all tests pass", (t) => {
  const { status, output } = npmTest(t, { one: 'test("one", () => {});' });
  assert.equal(status, 0, output);
  assert.match(output, /^unit: 1 passed, 0 failed, 0 skipped$/m);
});

test("npm test exits with 1 if a test fails, and shows the failure", (t) => {
  const { status, output, results } = npmTest(t, {
    one: 'test("one", () => {});',
    two: 'test("two", () => { throw new Error("on purpose"); });',
  });
  assert.equal(status, 1, output);
  assert.match(output, /on purpose/);
  assert.equal(results, "1 1 0\n");
});

test("a file that ends before its tests counts as failed", (t) => {
  const { status, output } = npmTest(t, { one: "process.kill(process.pid, 'SIGKILL');", two: "}" });
  assert.equal(status, 1, output);
  assert.match(output, /^unit: 0 passed, 2 failed, 0 skipped$/m);
});

test("a test that passes on the second try is reported as flaky", (t) => {
  const flag = JSON.stringify(join(temporaryDirectory(t), "flag"));
  const { status, output, results } = npmTest(t, {
    one: `test("one", () => { if (!fs.existsSync(${flag})) { fs.writeFileSync(${flag}, ""); throw new Error("first"); } });`,
  });
  assert.equal(status, 0, output);
  assert.match(output, /^unit: 1 passed, 0 failed, 0 skipped; flaky: test\/one\.test\.ts$/m);
  assert.equal(results, "1 0 0\ntest/one.test.ts\n");
});

test("a failed request of a roll-out gets no second try", (t) => {
  const flag = JSON.stringify(join(temporaryDirectory(t), "flag"));
  const { status, output } = npmTest(t, {
    one: `test("one", () => { if (!fs.existsSync(${flag})) { fs.writeFileSync(${flag}, ""); throw new Error("2 requests failed"); } });`,
  });
  assert.equal(status, 1, output);
});

test("a suite that is stopped says so, and ends with its counts", (t) => {
  const { status, output, results } = npmTest(t, {
    one: 'test("one", () => new Promise(() => { setInterval(() => {}, 1000); process.kill(process.ppid, "SIGTERM"); }));',
  });
  assert.equal(status, 1, output);
  assert.match(output, /^unit was stopped before its end\. Files that had not ended count as failed\.$/m);
  assert.equal(results, "0 1 0\n");
});

/** Runs `npm test` as it stands in a package with the test files `bodies`. */
function npmTest(t: TestContext, bodies: Readonly<Record<string, string>>) {
  const directory = temporaryDirectory(t);
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  writeFileSync(join(directory, "package.json"), JSON.stringify({ scripts, type: "module" }));
  mkdirSync(join(directory, "test"));
  for (const file of ["test/run.ts", "test/suites.ts"]) copyFileSync(join(root, file), join(directory, file));
  const head = 'import { test } from "node:test";\nimport fs from "node:fs";\n';
  for (const [name, body] of Object.entries(bodies))
    writeFileSync(join(directory, `test/${name}.test.ts`), `${head}${body}\n`);
  const path = join(directory, "results");
  // As a person runs it, not as a child of the runner that runs this test.
  const { NODE_TEST_CONTEXT: _, GITHUB_STEP_SUMMARY: __, ...env } = process.env;
  const { status, stdout, stderr } = spawnSync("npm", ["test"], {
    cwd: directory,
    env: { ...env, TEST_RESULTS: path },
    encoding: "utf8",
  });
  return { status, output: stdout + stderr, results: readFileSync(path, "utf8") };
}
