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

const fails = 'test("two", () => { throw new Error("on purpose"); });';
const dies = "process.kill(process.pid, 'SIGKILL');";
const counts = (text: string) => new RegExp(`^unit: ${text}$`, "m");
const stopped = /^unit was stopped before its end\. Files that had not ended count as failed\.$/m;
const flaky = counts("1 passed, .*; flaky: test/0.test.ts");

for (const [claim, files, exitCode, says, results] of [
  ["exits with 0 if all tests pass", [good], 0, counts("1 passed, 0 failed, 0 skipped"), "1 0 0\n"],
  ["exits with 1 if a test fails, and shows the failure", [good, fails], 1, /on purpose/, "1 1 0\n"],
  ["counts a file that ends early as failed", [dies, "}"], 1, counts("0 passed, 2 failed, .*"), "0 2 0\n"],
  ["names what passes on the second try", [failsOnce("first")], 0, flaky, "1 0 0\ntest/0.test.ts\n"],
  ["tries no failed request again", [failsOnce("2 requests failed")], 1, /2 requests failed/, "0 1 0\n"],
  ["says so if it is stopped, and ends with its counts", [stops], 1, stopped, "0 1 0\n"],
] as const) {
  test(`npm test ${claim}`, (t) => {
    const flag = JSON.stringify(join(temporaryDirectory(t), "flag"));
    const bodies = files.map((body) => (typeof body === "string" ? body : body(flag)));
    const ended = npmTest(t, bodies);
    assert.deepEqual([ended.status, ended.results], [exitCode, results], ended.output);
    assert.match(ended.output, says);
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
