import { readdirSync, readFileSync, rmSync } from "node:fs";
import { endProgress } from "./screen.ts";

const graceMs = 3_000;
const lookIntervalMs = 20;

/**
 * Makes a function that ends every process with `mark` (`NAME=value`) in its environment and removes `directory`. It is
 * called when this process exits, at the latest, so it must be synchronous.
 */
export function createCleanUp(directory: string, mark: string): () => void {
  function cleanUp(): void {
    endProgress();
    endProcesses(mark);
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  }

  process.once("exit", cleanUp);
  for (const [signal, exitCode] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const) {
    process.once(signal, () => {
      endProgress();
      console.error(`\nInterrupted by ${signal}: cleaning up.`);
      process.exit(exitCode);
    });
  }
  // The reader of the output (such as `head`) has exited.
  process.stdout.on("error", () => process.exit(1));
  process.stderr.on("error", () => {});
  return cleanUp;
}

/** Sends SIGTERM, then SIGKILL. Looks again each time, to find processes that have just started. */
function endProcesses(mark: string): void {
  const deadlineMs = performance.now() + graceMs;
  const asked = new Set<number>();
  for (let left = findProcesses(mark); left.length > 0; left = findProcesses(mark)) {
    const isOverdue = performance.now() > deadlineMs;
    for (const pid of left) {
      if (isOverdue) signal(pid, "SIGKILL");
      else if (!asked.has(pid)) signal(pid, "SIGTERM");
      asked.add(pid);
    }
    pauseMs(lookIntervalMs);
  }
}

function findProcesses(mark: string): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => environmentOf(pid).includes(mark));
}

/** Empty for a process that has exited, is a zombie, or belongs to another user. */
function environmentOf(pid: number): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
  } catch {
    return [];
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

function pauseMs(durationMs: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, durationMs);
}
