import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import "./environment.ts";
import type { Scope } from "./temporary.ts";
import { until } from "./until.ts";

export interface LogLine {
  readonly event?: string;
  readonly level?: string;
  readonly msg?: string;
  readonly deployment?: number;
  readonly [name: string]: unknown;
}

/** Reads the JSON log of a service as it is written, and lets a test wait for a line. */
export class LogReader {
  readonly lines: LogLine[] = [];
  /** Lines of standard output that are not JSON, and all of standard error. */
  readonly otherText: string[] = [];

  constructor(child: ChildProcess) {
    const takeText = (text: string) => void this.otherText.push(text);
    if (child.stderr) createInterface(child.stderr).on("line", takeText);
    if (child.stdout)
      createInterface(child.stdout).on("line", (text) => {
        try {
          this.lines.push(JSON.parse(text) as LogLine);
        } catch {
          takeText(text);
        }
      });
  }

  /** The first line that matches, past or future. */
  waitFor(matches: (line: LogLine) => boolean): Promise<LogLine> {
    return until("a line of the log", () => this.lines.find(matches)).catch((error: Error) => {
      const seen = this.lines.slice(-20).map((line) => JSON.stringify(line));
      throw new Error([error.message, ...seen, ...this.otherText].join("\n"));
    });
  }

  /** The line with the result of deployment `id`. */
  waitForEnding(id: number): Promise<LogLine> {
    return this.waitFor(({ event, deployment }) => deployment === id && endings.has(event ?? ""));
  }

  /** The output of the script of deployment `id`. */
  outputOf(id: number): string[] {
    return this.lines
      .filter(({ event, deployment }) => event === "deployment.output" && deployment === id)
      .map(({ msg }) => msg ?? "");
  }
}

const endings = new Set(
  ["succeeded", "failed", "timed_out", "cancelled", "interrupted"].map((state) => `deployment.${state}`),
);

/** True if no process has this id any more. A zombie still has it. */
export function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}

/** The current and the peak memory of a process, as counted by Linux. */
export function memoryOf(pid: number | undefined): { residentBytes: number; peakBytes: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const bytesOf = (name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) * 1024;
  return { residentBytes: bytesOf("VmRSS"), peakBytes: bytesOf("VmHWM") };
}

/**
 * A prefix that makes system calls of a command fail, in the syntax of strace's `inject`, such as
 * `fsync:error=EIO:when=3`. The main thread writes the database and starts scripts; the others, which write the spool, are
 * traced only with `-f`, and each counts for itself. The service stays a child of ours (-D).
 */
export function straced(fault: string, ...options: readonly "-f"[]): string[] {
  return ["strace", "-D", ...options, "-qq", ...injecting(fault)];
}

/** Makes system calls of a running process fail, as `straced` does, until the returned function is called. */
export async function injectFault(
  scope: Scope,
  pid: number,
  fault: string,
  ...threads: readonly "-f"[]
): Promise<() => Promise<void>> {
  const options = [...threads, ...injecting(fault)];
  const tracer = spawn("strace", ["-p", String(pid), ...options], { stdio: ["ignore", "ignore", "pipe"] });
  const ended = once(tracer, "exit");
  scope.after(() => tracer.kill("SIGKILL"));
  // strace reports on standard error that it has attached.
  await Promise.race([once(tracer.stderr, "data"), ended]);
  return async () => {
    tracer.kill("SIGTERM");
    await ended;
  };
}

function injecting(fault: string): string[] {
  return ["-o", "/dev/null", "-e", `trace=${fault.split(":")[0]}`, "-e", `inject=${fault}`];
}

const every = Number(process.env.HOTPUSH_TEST_EVERY ?? 1);
/** A second try of a run is on the same calls, another run on others. */
const offset = Number(process.env.FUZZ_SEED ?? 0) % every;

/** The calls from the first to `last` that a fault is tried on: all of them, or every HOTPUSH_TEST_EVERY-th. */
export function triedCalls(last: number): readonly number[] {
  const calls = Array.from({ length: last }, (_, index) => index + 1);
  return calls.filter((call) => call % every === offset);
}

/** All processes that this one can see. */
export function readProcesses() {
  const pids = readdirSync("/proc").map(Number).filter(Number.isSafeInteger);
  return pids.flatMap((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
      const [, parent, group] = stat
        .slice(stat.lastIndexOf(")") + 2)
        .split(" ")
        .map(Number);
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      return [{ pid, parent: parent ?? 0, group: group ?? 0, command }];
    } catch {
      return []; // It is gone.
    }
  });
}
