import type { EventEmitter } from "node:events";
import { createReadStream } from "node:fs";
import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { type Deployment, isFinished } from "#deployments/deployment";
import { type DeploymentStep, findDeployment, listSteps } from "#deployments/store";
import type { Log } from "#log";
import type { Store } from "#platform/sqlite";
import { logBytes, logPath, readLog, stepOf } from "#runner/log-file";
import type { Stream } from "./context.ts";
import { type ControlEvent, deploymentJson, lineJson, stepJson } from "./shapes.ts";
import { whenDrained } from "./when-drained.ts";

/** What a deployment has printed so far, as it was printed. `timed`: as the file at `path` has it, byte by byte. */
export function logIn(path: string, format: "text" | "timed"): Stream {
  return { kind: "stream", write: (response) => (format === "text" ? sendText : sendFile)(path, response) };
}

async function sendFile(path: string, response: ServerResponse): Promise<void> {
  const end = logBytes(path) - 1;
  if (end < 0) response.end();
  else await pipeline(createReadStream(path, { end }), response).catch(() => response.destroy());
}

async function sendText(path: string, response: ServerResponse): Promise<void> {
  let isFirst = true;
  for (const lines of readLog(path, 0)) {
    const texts = lines.map(({ text }, index) => (isFirst && index === 0 ? text : `\n${text}`));
    isFirst &&= lines.length === 0;
    response.write(texts.join(""));
    await whenDrained(response);
    if (response.destroyed) return;
  }
  response.end(isFirst ? "" : "\n");
}

/** How soon a change by another instance is noticed, which no event in this process announces. */
const lookIntervalMs = 1_000;

interface EventsContext {
  readonly store: Store;
  readonly events: EventEmitter;
  /** The directory with the project's logs. */
  readonly statePath: string;
  readonly log: Log;
}

interface EventsWanted {
  /** The place in the log after the last line that the reader has. */
  readonly fromByte: number;
  /** Whether to go on until the deployment has ended. */
  readonly isFollowing: boolean;
}

/** The events of a deployment, one JSON object a line. A fault of the disk ends this stream and not the service. */
export function eventsIn(context: EventsContext, deployment: Deployment, wanted: EventsWanted): Stream {
  return {
    kind: "stream",
    async write(response) {
      const leaving = new AbortController();
      response.once("close", () => leaving.abort());
      try {
        for await (const events of readEventsOf(context, deployment, wanted, leaving.signal)) {
          response.write(events.map((event) => `${JSON.stringify(event)}\n`).join(""));
          await whenDrained(response);
          if (response.destroyed) return;
        }
        response.end();
      } catch (error) {
        context.log.error({ event: "control.failed", err: error }, "A deployment could not be followed");
        response.destroy();
      }
    },
  };
}

/**
 * Yields what a deployment has printed and done, then what it prints and does, some events at a time. The first event is the
 * deployment as it is, the last one the deployment as it ended. Everything is read from the log and the database when the
 * reader asks for more: one that is slow costs no memory and misses nothing.
 */
async function* readEventsOf(
  { store, events, statePath }: EventsContext,
  { id }: Pick<Deployment, "id">,
  { fromByte, isFollowing }: EventsWanted,
  signal: AbortSignal,
): AsyncGenerator<readonly ControlEvent[], void, void> {
  const path = logPath(statePath, id);
  const waking = createWaking(events, id, signal);
  const newSteps = createStepFinder();
  let place = fromByte;
  let sent: Deployment | null = null;
  let stepLines = 0;
  try {
    while (!signal.aborted) {
      // Both before the log: when a state or a step is in the database, the log has the lines before it.
      const found = findDeployment(store, id);
      const deployment: Deployment | null = found ?? sent;
      if (deployment === null) return;
      const isOver = !isFollowing || found === null || isFinished(found.state);
      const known = listSteps(store, deployment);
      if (sent === null || (hasChanged(sent, deployment) && !isOver)) yield [deploymentEvent(deployment)];
      if (sent === null && place > logBytes(path)) {
        place = 0;
        yield [{ event: "restarted" }];
      }
      // The lines that announced them are not sent.
      if (sent === null && place > 0) {
        yield newSteps(known);
        stepLines = Number.POSITIVE_INFINITY;
      }
      sent = deployment;
      for (const lines of readLog(path, place)) {
        yield lines.flatMap((line) => {
          if (stepOf(line.text) === null) return [lineJson(line)];
          stepLines += 1;
          return [...newSteps(listSteps(store, deployment), stepLines), lineJson(line)];
        });
        place = lines.at(-1)?.endByte ?? place;
        if (signal.aborted) return;
      }
      yield newSteps(known);
      if (isOver) return yield [deploymentEvent(deployment)];
      await waking.next();
    }
  } finally {
    waking.stop();
  }
}

function hasChanged(before: Deployment, now: Deployment): boolean {
  return before.state !== now.state || before.attempts !== now.attempts || before.liveAtMs !== now.liveAtMs;
}

function deploymentEvent(deployment: Deployment): ControlEvent {
  return { event: "deployment", deployment: deploymentJson(deployment) };
}

/** Finds what of the steps was not sent: that one has begun, and that it is over, each once. */
function createStepFinder() {
  let begun = 0;
  let ended = 0;
  return (steps: readonly DeploymentStep[], count = Number.POSITIVE_INFINITY): readonly ControlEvent[] => {
    const found: ControlEvent[] = [];
    for (const [index, step] of steps.slice(0, count).entries()) {
      if (index >= begun) found.push({ event: "step", step: { ...stepJson(step), durationMs: null } });
      begun = Math.max(begun, index + 1);
      // The end of the last one that is wanted comes with the beginning of the next.
      if (step.endedAtMs === null || index < ended || index + 1 >= count) continue;
      ended = index + 1;
      found.push({ event: "step", step: stepJson(step) });
    }
    return found;
  };
}

/** Wakes a reader when something has happened since it looked last, or after a second. */
function createWaking(events: EventEmitter, id: number, signal: AbortSignal) {
  let hasNews = false;
  let wake = () => {};
  const note = () => {
    hasNews = true;
    wake();
  };
  events.on(String(id), note);
  const timer = setInterval(note, lookIntervalMs).unref();
  signal.addEventListener("abort", note);
  return {
    async next(): Promise<void> {
      if (!hasNews) await new Promise<void>((resolve) => (wake = resolve));
      hasNews = false;
    },
    stop() {
      events.off(String(id), note);
      clearInterval(timer);
      signal.removeEventListener("abort", note);
    },
  };
}
