/**
 * `node test/run.ts <suite> [word…]`: runs the test files of a suite, or only those whose path contains one of the words.
 * Prints a line per file, each failure, and the slowest files. A file that failed runs once more, alone: if it passes
 * then, it is reported as flaky. Exits with 1 if a test failed. See CONTRIBUTING.md.
 *
 * If TEST_RESULTS names a file, the counts go there: `<passed> <failed> <skipped>`, then a line per flaky file.
 */
import { appendFileSync, globSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { type EventData, run } from "node:test";
import { spec } from "node:test/reporters";

const root = join(import.meta.dirname, "..");

interface Suite {
  readonly patterns: readonly string[];
  readonly exclude: readonly string[];
  readonly filesAtATime: number;
  /** Parts of the names of the files that take longest, the longest first: if they begin early, they don't end last. */
  readonly first: readonly string[];
  readonly last: readonly string[];
  readonly needsEngine: boolean;
}

const suites: Readonly<Record<string, Suite>> = {
  unit: {
    patterns: ["test/**/*.test.ts"],
    exclude: ["**/*.integration.test.ts", "test/e2e/**", "test/faults/**", "test/fuzz/**"],
    filesAtATime: 4,
    first: [],
    last: [],
    needsEngine: false,
  },
  integration: {
    patterns: ["test/**/*.integration.test.ts"],
    exclude: [],
    filesAtATime: 4,
    first: [
      "log.browser",
      "doubtful-push",
      "package",
      "demo",
      "output",
      "deployments/stop",
      "log-lines",
      "catch-up",
      "nginx",
    ],
    last: [],
    needsEngine: false,
  },
  faults: {
    patterns: ["test/faults/**/*.test.ts", "test/fuzz/**/*.test.ts"],
    exclude: [],
    filesAtATime: 3,
    first: [
      "roles-kill",
      "idle-connections",
      "body-floods",
      "damaged-state",
      "slow-senders",
      "faults/start",
      "kill",
      "io-error",
    ],
    last: [],
    needsEngine: false,
  },
  fuzz: {
    patterns: ["test/fuzz/**/*.test.ts"],
    exclude: [],
    filesAtATime: 2,
    first: [],
    last: [],
    needsEngine: false,
  },
  e2e: {
    patterns: ["test/e2e/**/*.test.ts"],
    exclude: [],
    // They mostly wait, for health checks and requests that end.
    filesAtATime: 5,
    first: [
      "rollout-swarm.",
      "self-swarm",
      "rollout-migration",
      "rollout-recreate-failures",
      "rollout-services",
      "rollout-scale",
      "rollout-failures",
      "first-deployment",
      "rollout-interrupted",
      "swarm-nodes",
    ],
    // It waits until nobody else uses the engine.
    last: ["without-engine"],
    needsEngine: true,
  },
};

/** FUZZ_RUNS asks for as long as it takes. */
const testTimeoutMs = process.env.FUZZ_RUNS ? Number.POSITIVE_INFINITY : 900_000;
const mostSecondTries = 3;
const slowestShown = 10;

interface FileResult {
  readonly file: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly durationMs: number;
}

interface Results {
  readonly files: readonly FileResult[];
  /** A failure that must not happen even once: no second try. */
  readonly hasFailedRequests: boolean;
}

process.exitCode = await main(process.argv.slice(2));

async function main([name = "", ...words]: readonly string[]): Promise<number> {
  const suite = suites[name];
  if (!suite) {
    console.error(`Usage: node test/run.ts ${Object.keys(suites).join("|")} [part of a path …]`);
    return 2;
  }
  const files = filesOf(suite, words);
  if (files.length === 0) {
    console.error(`No test file of ${name} has ${words.join(" or ")} in its path.`);
    return 2;
  }
  // Every process of a run shares what Node compiled: half of a short one's time goes there otherwise.
  process.env.NODE_COMPILE_CACHE ||= join(root, "node_modules/.cache/compiled");
  // A second try must not pass because it tries other values.
  process.env.FUZZ_SEED ||= String(Date.now() % 2 ** 31);
  const closeEngine = suite.needsEngine ? await openEngine() : undefined;
  const stopping = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stopping.abort());
  try {
    const first = await runFiles(files, suite.filesAtATime, stopping.signal);
    const flaky = stopping.signal.aborted ? [] : await passOnSecondTry(first, stopping.signal);
    report(name, first, flaky);
    return first.files.some(({ failed, file }) => failed > 0 && !flaky.includes(file)) ? 1 : 0;
  } finally {
    await closeEngine?.();
  }
}

function filesOf({ patterns, exclude, first, last }: Suite, words: readonly string[]): readonly string[] {
  const place = (file: string) => {
    if (last.some((part) => file.includes(part))) return first.length + 1;
    const index = first.findIndex((part) => file.includes(part));
    return index === -1 ? first.length : index;
  };
  return globSync([...patterns], { cwd: root, exclude: [...exclude] })
    .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
    .sort()
    .sort((a, b) => place(a) - place(b));
}

/** Starts a Docker to test against, for all files; if there can be none, each test says why it is skipped. */
async function openEngine(): Promise<() => Promise<void>> {
  const { closeLab, openLab, unavailable } = await import("./lab/lab.ts");
  const lab = await openLab();
  if (lab.kind === "ready") Object.assign(process.env, lab.env);
  else {
    console.error(`${lab.reason} The tests on a real engine are NOT run.`);
    process.env[unavailable] = lab.reason;
  }
  return async () => {
    if (lab.kind === "ready" && lab.wasStarted) await closeLab();
  };
}

async function runFiles(
  files: readonly string[],
  filesAtATime: number,
  signal: AbortSignal,
): Promise<Results> {
  const results: FileResult[] = [];
  const failures = new spec();
  let hasFailedRequests = false;
  failures.pipe(process.stdout, { end: false });
  const tests = run({
    files: files.map((file) => join(root, file)),
    cwd: root,
    concurrency: filesAtATime,
    timeout: testTimeoutMs,
    signal,
  });
  tests.on("test:fail", (data) => {
    failures.write({ type: "test:fail", data });
    if (/requests? failed/.test(String(data.details.error.cause ?? data.details.error)))
      hasFailedRequests = true;
  });
  tests.on("test:summary", (summary) => {
    if (summary.file === undefined) return;
    const result = resultOf(summary.file, summary);
    results.push(result);
    console.log(lineOf(result));
  });
  for await (const _ of tests); // Read to its end: the events above are all that counts.
  await new Promise<void>((resolve) => failures.end(resolve));
  return { files: withUnreported(files, results), hasFailedRequests };
}

function resultOf(file: string, { counts, duration_ms }: EventData.TestSummary): FileResult {
  const { tests, passed, skipped, todo } = counts;
  const failed = tests - passed - skipped - todo;
  return { file: relative(root, file), passed, failed, skipped, durationMs: duration_ms };
}

/** A file that ended without a word (it was killed, or has a syntax error) has failed. */
function withUnreported(files: readonly string[], results: readonly FileResult[]): readonly FileResult[] {
  const silent = files.filter((file) => !results.some((result) => result.file === file));
  const failed = { passed: 0, failed: 1, skipped: 0, durationMs: 0 };
  return [...results, ...silent.map((file) => ({ file, ...failed }))];
}

function lineOf({ file, passed, failed, skipped, durationMs }: FileResult): string {
  const counts = [`${passed} passed`];
  if (failed > 0) counts.push(`${failed} failed`);
  if (skipped > 0) counts.push(`${skipped} skipped`);
  return `${failed > 0 ? "✖" : "✔"} ${file.padEnd(56)} ${seconds(durationMs).padStart(8)}  ${counts.join(", ")}`;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

/** On a machine that others share a test may fail by chance; many failures are no chance. */
async function passOnSecondTry(first: Results, signal: AbortSignal): Promise<readonly string[]> {
  const failed = first.files.filter((result) => result.failed > 0).map(({ file }) => file);
  if (failed.length === 0 || failed.length > mostSecondTries || first.hasFailedRequests) return [];
  console.log(`\nFailed, and run once more alone: ${failed.join(" ")}`);
  const second = await runFiles(failed, 1, signal);
  return second.files.filter((result) => result.failed === 0).map(({ file }) => file);
}

function report(suite: string, { files }: Results, flaky: readonly string[]): void {
  const slowest = files.toSorted((a, b) => b.durationMs - a.durationMs).slice(0, slowestShown);
  const table = slowest.map(({ file, durationMs }) => `${seconds(durationMs).padStart(8)}  ${file}`);
  console.log(`\nThe slowest files:\n${table.join("\n")}`);
  const sum = (field: "passed" | "failed" | "skipped") => files.reduce((all, file) => all + file[field], 0);
  const saved = files.filter(({ file }) => flaky.includes(file)).reduce((all, { failed }) => all + failed, 0);
  const [passed, failed, skipped] = [sum("passed") + saved, sum("failed") - saved, sum("skipped")];
  console.log(`\n${suite}: ${passed} passed, ${failed} failed, ${skipped} skipped${flakyText(flaky)}`);
  const { TEST_RESULTS: results, GITHUB_STEP_SUMMARY: summary } = process.env;
  if (results) writeFileSync(results, [`${passed} ${failed} ${skipped}`, ...flaky, ""].join("\n"));
  if (summary)
    appendFileSync(
      summary,
      `${suite}: ${passed} passed, ${failed} failed, ${skipped} skipped${flakyText(flaky)}\n\n`,
    );
}

function flakyText(flaky: readonly string[]): string {
  return flaky.length === 0 ? "" : `; flaky: ${flaky.join(", ")}`;
}
