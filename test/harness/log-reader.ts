import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";

export interface LogLine {
  readonly event?: string;
  readonly level?: string;
  readonly msg?: string;
  readonly deployment?: number;
  readonly [name: string]: unknown;
}

interface Waiter {
  readonly matches: (line: LogLine) => boolean;
  readonly resolve: (line: LogLine) => void;
}

const longestWaitMs = 60_000;

/** Reads the JSON log of a service as it is written, and lets a test wait for a line. */
export class LogReader {
  readonly lines: LogLine[] = [];
  /** Lines of standard output that are not JSON, and all of standard error. */
  readonly otherText: string[] = [];
  readonly #waiters = new Set<Waiter>();

  constructor(child: ChildProcess) {
    if (child.stdout) createInterface(child.stdout).on("line", (text) => this.#take(text));
    if (child.stderr) createInterface(child.stderr).on("line", (text) => this.otherText.push(text));
  }

  /** The first line that matches, past or future. */
  waitFor(matches: (line: LogLine) => boolean): Promise<LogLine> {
    const known = this.lines.find(matches);
    if (known) return Promise.resolve(known);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        const seen = [...this.lines.slice(-20).map((line) => JSON.stringify(line)), ...this.otherText].join(
          "\n",
        );
        reject(
          new Error(`the line waited for did not come within ${longestWaitMs} ms; the last were:\n${seen}`),
        );
      }, longestWaitMs);
      this.#waiters.add({
        matches,
        resolve: (line) => {
          clearTimeout(timer);
          resolve(line);
        },
      });
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

  #take(text: string): void {
    const line = parsed(text);
    if (!line) {
      this.otherText.push(text);
      return;
    }
    this.lines.push(line);
    for (const waiter of this.#waiters) {
      if (!waiter.matches(line)) continue;
      this.#waiters.delete(waiter);
      waiter.resolve(line);
    }
  }
}

const endings = new Set(
  ["succeeded", "failed", "timed_out", "cancelled", "interrupted"].map((state) => `deployment.${state}`),
);

function parsed(text: string): LogLine | null {
  try {
    return JSON.parse(text) as LogLine;
  } catch {
    return null;
  }
}
