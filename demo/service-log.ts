import type { ChildProcess } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { createInterface } from "node:readline";
import { Unexpected } from "./expect.ts";

/** A line of the service's log; only `msg` if it printed something else. */
export interface LogLine {
  readonly time?: string;
  readonly event?: string;
  readonly deployment?: number;
  readonly msg: string;
  readonly [field: string]: unknown;
}

export interface ServiceLog {
  /** Reads what `service` prints, from now to its end. */
  readonly read: (service: ChildProcess) => void;
  /**
   * All lines, from the first one on, as they are printed.
   *
   * @throws Unexpected after 30 s of silence, or if the service has exited
   */
  readonly follow: () => AsyncGenerator<LogLine>;
  /** The first line that matches, past or future; throws as `follow` does. */
  readonly waitFor: (matches: (line: LogLine) => boolean) => Promise<LogLine>;
  /** The last message about a deployment. */
  readonly lastOf: (deploymentId: number) => string;
  /** The last lines, for a person. */
  readonly tail: (count: number) => readonly string[];
}

const silenceMs = 30_000;

export function createServiceLog(): ServiceLog {
  const lines: LogLine[] = [];
  const news = new EventEmitter();
  let hasEnded = false;

  function take(text: string): void {
    lines.push(parse(text));
    news.emit("change");
  }

  async function* follow(): AsyncGenerator<LogLine> {
    for (let index = 0; ; index += 1) {
      while (index >= lines.length) await change();
      yield lines[index] as LogLine;
    }
  }

  async function change(): Promise<void> {
    if (hasEnded) throw new Unexpected("The service exited while more output was expected.");
    try {
      await once(news, "change", { signal: AbortSignal.timeout(silenceMs) });
    } catch {
      throw new Unexpected(
        `The service printed nothing for ${silenceMs / 1_000} s while more output was expected.`,
      );
    }
  }

  return {
    read(service) {
      for (const stream of [service.stdout, service.stderr]) {
        if (stream) createInterface(stream).on("line", take);
      }
      service.once("close", () => {
        hasEnded = true;
        news.emit("change");
      });
    },
    follow,
    async waitFor(matches) {
      for await (const line of follow()) if (matches(line)) return line;
      throw new Unexpected("The service's log has ended.");
    },
    lastOf: (id) => lines.findLast((line) => line.deployment === id && isOfRun(line))?.msg ?? "waits",
    tail: (count) => lines.slice(-count).map(({ event, msg }) => (event ? `${event}: ${msg}` : msg)),
  };
}

function isOfRun({ event }: LogLine): boolean {
  return event?.startsWith("deployment.") === true;
}

function parse(text: string): LogLine {
  try {
    return JSON.parse(text) as LogLine;
  } catch {
    return { msg: text };
  }
}
