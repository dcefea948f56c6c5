import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { temporaryDirectory } from "../harness/temporary.ts";

const root = join(import.meta.dirname, "../..");

const failsOnce = (error: string) => (flag: string) =>
  `test("one", () => { if (!fs.existsSync(${flag})) { fs.writeFileSync(${flag}, ""); throw new Error("${error}"); } });`;
const good = 'test("one", () => {});';
const stops =
  'test("one", () => new Promise(() => { setInterval(() => {}, 1000); process.kill(process.ppid, "SIGTERM"); }));';

for (const [claim, files, exitCode, says, results] of [
  ["exits with 0 if all tests pass", [good], 0, /^unit: 1 passed, 0 failed, 0 skipped$/m, "1 0 0\n"],
  [
    "exits with 1 if a test fails, and shows the failure",
    [good, 'test("two", () => { throw new Error("on purpose"); });'],
    ...([1, /on purpose/, "1 1 0\n"] as const),
  ],
  [
    "counts a file that ends before its tests as failed",
    ["process.kill(process.pid, 'SIGKILL');", "}"],
    ...([1, /^unit: 0 passed, 2 failed, 0 skipped$/m, "0 2 0\n"] as const),
  ],
  [
    "reports a test that passes on the second try as flaky",
    [failsOnce("first")],
    ...([0, /skipped; flaky: test\/0\.test\.ts$/m, "1 0 0\ntest/0.test.ts\n"] as const),
  ],
  [
    "gives a failed request of a roll-out no second try",
    [failsOnce("2 requests failed")],
    ...([1, /2 requests failed/, "0 1 0\n"] as const),
  ],
  [
    "says so if it is stopped, and ends with its counts",
    [stops],
    ...([
      1,
      /^unit was stopped before its end\. Files that had not ended count as failed\.$/m,
      "0 1 0\n",
    ] as const),
  ],
] as const) {
  test(`npm test ${claim}`, (t) => {
    const flag = JSON.stringify(join(temporaryDirectory(t), "flag"));
    const ended = npmTest(
      t,
      files.map((body) => (typeof body === "string" ? body : body(flag))),
    );
    assert.equal(ended.status, exitCode, ended.output);
    assert.match(ended.output, says);
    assert.equal(ended.results, results);
  });
}

/** Runs `npm test` as it stands in a package with the test files `bodies`. */
function npmTest(t: TestContext, bodies: readonly string[]) {
  const directory = temporaryDirectory(t);
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  writeFileSync(join(directory, "package.json"), JSON.stringify({ scripts, type: "module" }));
  mkdirSync(join(directory, "test"));
  for (const file of ["test/run.ts", "test/suites.ts"]) copyFileSync(join(root, file), join(directory, file));
  const head = 'import { test } from "node:test";\nimport fs from "node:fs";\n';
  for (const [name, body] of bodies.entries())
    writeFileSync(join(directory, `test/${name}.test.ts`), `${head}${body}\n`);
  const path = join(directory, "results");
  // As a person runs it, not as a child of the runner that runs this test.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { status, stdout, stderr } = spawnSync("npm", ["test"], {
    cwd: directory,
    env: { ...env, TEST_RESULTS: path },
    encoding: "utf8",
  });
  return { status, output: stdout + stderr, results: readFileSync(path, "utf8") };
}
