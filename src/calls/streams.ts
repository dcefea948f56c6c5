import type { EventEmitter } from "node:events";
import { pipeline } from "node:stream/promises";
import { type Deployment, isFinished } from "#deployments/deployment";
import { findDeployment } from "#deployments/store";
import type { Log } from "#log";
import type { Store } from "#platform/sqlite";
import { logPath, readLog } from "#runner/log-file";
import type { Stream } from "./context.ts";
import { type ControlEvent, type DeploymentJson, lineJson } from "./shapes.ts";

/** Proxies close a connection that is silent for long. */
const beatMs = 15_000;
/** How soon a change by another instance is noticed, which no event in this process announces. */
const lookIntervalMs = 1_000;

interface EventsContext {
  readonly store: Store;
  readonly events: EventEmitter;
  /** The directory with the project's logs. */
  readonly statePath: string;
  readonly log: Log;
  readonly toJson: (deployment: Deployment) => DeploymentJson;
}

interface EventsWanted {
  /** The place in the log after the last line that the reader has. */
  readonly from: number;
  /** Whether to go on until the deployment has ended. */
  readonly isFollowing: boolean;
}

/**
 * What a deployment has printed and done, then what it prints and does, some events at a time. The last one is the deployment
 * as it ended. Everything is read from the log and the database when the reader asks for more: one that is slow costs no memory
 * and misses nothing. The `endByte` of a line is where a reader goes on after a lost connection, without a lost or doubled line.
 * A fault of the disk ends this stream and not the service.
 */
export function eventsIn(
  { store, events, statePath, log, toJson }: EventsContext,
  id: number,
  { from, isFollowing }: EventsWanted,
): Stream {
  return eventStream<ControlEvent>(log, async function* (textOf, signal) {
    const textOfDeployment = (deployment: DeploymentJson) => textOf({ event: "deployment", deployment });
    let wake = () => {};
    let hasNews = false;
    const note = () => {
      hasNews = true;
      wake();
    };
    events.on(String(id), note);
    const timer = setInterval(note, lookIntervalMs).unref();
    signal.addEventListener("abort", note);
    let place = from;
    let sent: DeploymentJson | null = null;
    try {
      while (!signal.aborted) {
        hasNews = false;
        // Before the log: when a state is in the database, the log has the lines before it.
        const recorded = findDeployment(store, id);
        if (recorded === null) return;
        const found = toJson(recorded);
        const isOver = !isFollowing || isFinished(found.state);
        if (!isOver && hasChanged(sent, found)) yield textOfDeployment(found);
        sent = found;
        for (const lines of readLog(logPath(statePath, id), place)) {
          yield lines.map((line) => textOf(lineJson(line))).join("");
          place = lines.at(-1)?.endByte ?? place;
          if (signal.aborted) return;
        }
        if (isOver) return yield textOfDeployment(found);
        if (!hasNews) await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      events.off(String(id), note);
      clearInterval(timer);
    }
  });
}

function hasChanged(before: DeploymentJson | null, now: DeploymentJson): boolean {
  const shown = ["state", "attempts", "liveAt", "waitReason"] as const;
  return shown.some((name) => before?.[name] !== now[name]);
}

/**
 * Server-sent events (HTML Living Standard, section 9.2), each a JSON object.
 *
 * @param read gives their texts when the reader asks for more, until `signal` is aborted
 */
export function eventStream<Event extends object>(
  log: Log,
  read: (textOf: (event: Event) => string, signal: AbortSignal) => AsyncIterable<string>,
): Stream {
  const textOf = (event: Event) => `data: ${JSON.stringify(event)}\n\n`;
  return {
    async write(response) {
      const leaving = new AbortController();
      response.once("close", () => leaving.abort());
      const keepOpen = () => response.writableEnded || response.write(":\n\n");
      const beat = setInterval(keepOpen, beatMs).unref();
      try {
        await pipeline(read(textOf, leaving.signal), response);
      } catch (error) {
        // The reader has gone away.
        if (String((error as NodeJS.ErrnoException).code).startsWith("ERR_STREAM")) return;
        log.error({ event: "control.failed", err: error }, "Events could not be read to their end");
      } finally {
        leaving.abort();
        clearInterval(beat);
      }
    },
  };
}
