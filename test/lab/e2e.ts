/**
 * `node test/lab/run.ts node test/lab/e2e.ts`: all of test/e2e, told on standard output and, in TAP, to the file
 * TEST_RESULTS. Several files at a time share the engine; those that take minutes begin first, so that they do not end
 * last. (The command line of node runs them by name.)
 */
import { createWriteStream, mkdirSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { run } from "node:test";
import { spec, tap } from "node:test/reporters";

const directory = join(import.meta.dirname, "../e2e");
const longest = ["rollout-swarm", "self-swarm", "rollout-failures", "rollout-recreate-failures"];
/** It waits until nobody else uses the engine. */
const last = "without-engine";
const filesAtATime = 4;
const testTimeoutMs = 900_000;

const names = readdirSync(directory)
  .filter((file) => file.endsWith(".test.ts"))
  .map((file) => file.replace(".test.ts", ""));
const others = names.filter((name) => !longest.includes(name) && name !== last);
const files = [...longest, ...others, last].map((name) => join(directory, `${name}.test.ts`));
const results = process.env.TEST_RESULTS || "node_modules/.cache/test-results.tap";
mkdirSync(dirname(results), { recursive: true });

// Whoever stops this stops the test files with it, before the engine goes.
const stopping = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) {
  process.once(name, () => {
    process.exitCode = 1;
    stopping.abort();
  });
}
const { signal } = stopping;
const tests = run({ files, concurrency: filesAtATime, timeout: testTimeoutMs, signal });
tests.on("test:fail", () => {
  process.exitCode = 1;
});
tests.compose(new spec()).pipe(process.stdout);
tests.compose(tap).pipe(createWriteStream(results));
