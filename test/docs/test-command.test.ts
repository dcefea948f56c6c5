import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { temporaryDirectory } from "../harness/temporary.ts";

const root = join(import.meta.dirname, "../..");

/** Runs `npm test` as it stands, but for the linter, in a package whose one test is `body`. @returns its exit code */
function npmTest(t: TestContext, body: string): number | null {
  const directory = temporaryDirectory(t);
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  writeFileSync(
    join(directory, "package.json"),
    JSON.stringify({ scripts: { test: scripts.test.replace("npm run lint && ", "") } }),
  );
  mkdirSync(join(directory, "test"));
  writeFileSync(join(directory, "test/one.test.ts"), `require("node:test").test("one", () => ${body});\n`);
  // As a person has it, and not as the runner that runs this test.
  const { NODE_TEST_CONTEXT: _, TEST_RESULTS: __, ...env } = process.env;
  return spawnSync("npm", ["test"], { cwd: directory, env, stdio: "ignore" }).status;
}

test("npm test ends with 0 where all tests pass, also where nobody asks for their results in a file", (t) => {
  assert.equal(npmTest(t, "{}"), 0);
});

test("npm test ends with 1 where a test fails", (t) => {
  assert.equal(npmTest(t, "{ throw new Error() }"), 1);
});
