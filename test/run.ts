/**
 * `node test/run.ts <suite> [word…]`: runs the test files of a suite, or only those whose path contains one of the words.
 * Prints a line per file, each failure, and the slowest files. A file that failed runs once more, alone: if it passes
 * then, it is reported as flaky. Exits with 1 if a test failed. See CONTRIBUTING.md.
 *
 * If TEST_RESULTS names a file, the counts go there: `<passed> <failed> <skipped>`, then a line per flaky file.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { type EventData, run } from "node:test";
import { spec } from "node:test/reporters";
import { setTimeout as sleep } from "node:timers/promises";
import { type Suite, suites } from "./suites.ts";

const root = join(import.meta.dirname, "..");

/** FUZZ_RUNS asks for as long as it takes. */
const timeoutFactor = process.env.FUZZ_RUNS ? 1_000 : 1;
/** The time-out of a test names it, and lets it clean up; that of its file ends what waits for ever without a test. */
const testTimeoutMs = 500_000 * timeoutFactor;
const fileTimeoutMs = 1_800_000 * timeoutFactor;
/** If more processes than this want to run, another file would make the tests of all files late. */
const busyFrom = 2 * availableParallelism();
/** Files that run, and the last that waits for its turn. */
const running = { count: 0, last: Promise.resolve() };
const mostSecondTries = 5;
const slowestShown = 10;

interface FileResult {
  readonly file: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly durationMs: number;
  /** Nothing may be lost even once; what reached a time-out would only take as long again. */
  readonly mayTryAgain: boolean;
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
    const first = await runLanes(files, suite, stopping.signal);
    const flaky = stopping.signal.aborted ? [] : await passOnSecondTry(first, suite, stopping.signal);
    if (stopping.signal.aborted)
      console.log(`\n${name} was stopped before its end. Files that had not ended count as failed.`);
    report(name, first, flaky);
    return first.some(({ failed, file }) => failed > 0 && !flaky.includes(file)) ? 1 : 0;
  } finally {
    await closeEngine?.();
  }
}

function filesOf({ patterns, exclude = [], first }: Suite, words: readonly string[]): readonly string[] {
  const parts = partsOf(first);
  const place = (file: string) => {
    const index = parts.findIndex((part) => file.includes(part));
    return index === -1 ? parts.length : index;
  };
  return globSync([...patterns], { cwd: root, exclude: [...exclude] })
    .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
    .sort()
    .sort((a, b) => place(a) - place(b));
}

function partsOf(names: string | undefined): readonly string[] {
  return names?.split(" ") ?? [];
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

/** The files in turn beside the others, whose lane then helps with the others; those that must be alone after all. */
async function runLanes(
  files: readonly string[],
  suite: Suite,
  signal: AbortSignal,
): Promise<readonly FileResult[]> {
  const isOf = (lane: string | undefined) => (file: string) =>
    partsOf(lane).some((part) => file.includes(part));
  const alone = files.filter(isOf(suite.alone));
  const inTurn = files.filter((file) => !alone.includes(file) && isOf(suite.inTurn)(file));
  const others = files.filter((file) => !alone.includes(file) && !inTurn.includes(file));
  const inTurnAndHelp = async () => [
    ...(await runFiles(inTurn, 1, suite, signal)),
    ...(await runFiles(suite.inTurn ? others : [], 1, suite, signal)),
  ];
  const lanes = [runFiles(others, suite.filesAtATime, suite, signal), inTurnAndHelp()];
  return [...(await Promise.all(lanes)).flat(), ...(await runFiles(alone, 1, suite, signal))];
}

/** @param waiting gets empty; several calls may take from one list */
async function runFiles(
  waiting: string[],
  filesAtATime: number,
  suite: Suite,
  signal: AbortSignal,
): Promise<readonly FileResult[]> {
  const results: FileResult[] = [];
  const worker = async () => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      if (suite.waitsWhileBusy) await untilNotBusy(signal);
      running.count += 1;
      const result = await runFile(file, signal);
      running.count -= 1;
      console.log(lineOf(result));
      results.push(result);
    }
  };
  await Promise.all(Array.from({ length: filesAtATime }, worker));
  return results;
}

/** Waits while the processors are busy, but not if no file runs. In turn: each sees what the one before it costs. */
function untilNotBusy(signal: AbortSignal): Promise<void> {
  running.last = running.last.then(async () => {
    while (running.count > 0 && !signal.aborted && (await processesThatRun()) > busyFrom);
  });
  return running.last;
}

/** @returns how many processes run or want to, on the average of ten seconds */
async function processesThatRun(): Promise<number> {
  const samples = 20;
  let sum = 0;
  for (let index = 0; index < samples; index += 1) {
    await sleep(500);
    sum += Number(/^procs_running (\d+)$/m.exec(readFileSync("/proc/stat", "utf8"))?.[1]);
  }
  return sum / samples;
}

/** Runs a file in a process of its own. It has failed if it ends without a word: it was killed, or has a syntax error. */
async function runFile(file: string, signal: AbortSignal): Promise<FileResult> {
  const startedMs = performance.now();
  const none = { passed: 0, failed: 1, skipped: 0 };
  if (signal.aborted) return { file, ...none, durationMs: 0, mayTryAgain: false };
  const timeout = AbortSignal.timeout(fileTimeoutMs);
  const failures = new spec();
  failures.pipe(process.stdout, { end: false });
  const tests = run({
    files: [join(root, file)],
    cwd: root,
    timeout: testTimeoutMs,
    signal: AbortSignal.any([signal, timeout]),
  });
  let counts: Pick<FileResult, "passed" | "failed" | "skipped"> = none;
  let mayTryAgain = true;
  tests.on("test:fail", (data) => {
    failures.write({ type: "test:fail", data });
    const error: Error & { failureType?: string } = data.details.error;
    const hasLost = /(?:requests?|pushes) (?:failed|were lost)/.test(String(error.cause ?? error));
    if (hasLost || error.failureType === "testTimeoutFailure") mayTryAgain = false;
  });
  tests.on("test:summary", (summary) => {
    if (summary.file !== undefined) counts = countsOf(summary);
  });
  for await (const _ of tests); // Read to its end: the events above are all that counts.
  await new Promise<void>((resolve) => failures.end(resolve));
  if (timeout.aborted) console.log(`${file} did not end within ${seconds(fileTimeoutMs)}, and was stopped.`);
  const durationMs = performance.now() - startedMs;
  return { file, ...counts, durationMs, mayTryAgain: mayTryAgain && !timeout.aborted };
}

function countsOf({ counts: { tests, passed, skipped, todo } }: EventData.TestSummary) {
  return { passed, failed: tests - passed - skipped - todo, skipped };
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
async function passOnSecondTry(
  first: readonly FileResult[],
  suite: Suite,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const hasFailed = first.filter(({ failed }) => failed > 0);
  const failed = hasFailed.filter(({ mayTryAgain }) => mayTryAgain).map(({ file }) => file);
  if (failed.length === 0 || hasFailed.length > mostSecondTries) return [];
  console.log(`\nFailed, and run once more alone: ${failed.join(" ")}`);
  const second = await runFiles(failed, 1, suite, signal);
  return second.filter((result) => result.failed === 0).map(({ file }) => file);
}

function report(suite: string, files: readonly FileResult[], flaky: readonly string[]): void {
  const slowest = files.toSorted((a, b) => b.durationMs - a.durationMs).slice(0, slowestShown);
  const table = slowest.map(({ file, durationMs }) => `${seconds(durationMs).padStart(8)}  ${file}`);
  console.log(`\nThe slowest files:\n${table.join("\n")}`);
  const sum = (field: "passed" | "failed" | "skipped") => files.reduce((all, file) => all + file[field], 0);
  const saved = files.filter(({ file }) => flaky.includes(file)).reduce((all, { failed }) => all + failed, 0);
  const passed = sum("passed") + saved;
  const failed = sum("failed") - saved;
  const skipped = sum("skipped");
  const flakyText = flaky.length === 0 ? "" : `; flaky: ${flaky.join(", ")}`;
  console.log(`\n${suite}: ${passed} passed, ${failed} failed, ${skipped} skipped${flakyText}`);
  const { TEST_RESULTS: results } = process.env;
  if (results) writeFileSync(results, [`${passed} ${failed} ${skipped}`, ...flaky, ""].join("\n"));
}
