import { type Deployment, isFinished } from "#deployments/deployment";
import { type DeploymentStep, findDeployment, listSteps } from "#deployments/store";
import { logBytes, logPath, readLog, stepOf } from "#runner/log-file";
import type { ProjectContext, Stream } from "./call.ts";
import { type ControlEvent, deploymentJson, lineJson, stepJson } from "./shapes.ts";
import { whenDrained } from "./when-drained.ts";

/** How soon a change by another instance is noticed, which no event in this process announces. */
const lookIntervalMs = 1_000;

type EventsContext = Pick<ProjectContext, "store" | "events" | "logStatePath" | "log">;

/** The events of a deployment, one JSON object a line. */
export function eventsIn(
  context: EventsContext,
  deployment: Deployment,
  { fromByte, isFollowing }: Pick<EventsWanted, "fromByte" | "isFollowing">,
): Stream {
  return {
    kind: "stream",
    async write(response) {
      const leaving = new AbortController();
      response.once("close", () => leaving.abort());
      const wanted = { fromByte, isFollowing, signal: leaving.signal };
      try {
        for await (const events of readEventsOf(context, deployment, wanted)) {
          response.write(events.map((event) => `${JSON.stringify(event)}\n`).join(""));
          await whenDrained(response);
          if (response.destroyed) return;
        }
        response.end();
      } catch (error) {
        // A fault of the disk ends this stream and not the service.
        context.log.error({ event: "control.failed", err: error }, "A deployment could not be followed");
        response.destroy();
      }
    },
  };
}

export interface EventsWanted {
  /** The place in the log after the last line that the reader has. */
  readonly fromByte: number;
  /** Whether to go on until the deployment has ended. */
  readonly isFollowing: boolean;
  /** Aborted when the reader has gone. */
  readonly signal: AbortSignal;
}

/**
 * Yields what a deployment has printed and done, then what it prints and does, some events at a time. The first event is the
 * deployment as it is, the last one the deployment as it ended. Everything is read from the log and the database when the
 * reader asks for more: one that is slow costs no memory and misses nothing.
 */
export async function* readEventsOf(
  { store, events, logStatePath }: EventsContext,
  { id }: Pick<Deployment, "id">,
  { fromByte, isFollowing, signal }: EventsWanted,
): AsyncGenerator<readonly ControlEvent[], void, void> {
  const path = logPath(logStatePath, id);
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
          const isStep = stepOf(line.text) !== null;
          if (isStep) stepLines += 1;
          const steps = isStep ? newSteps(listSteps(store, deployment), stepLines) : [];
          return [...steps, lineJson(line)];
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
  const ended = new Set<number>();
  return (steps: readonly DeploymentStep[], count = Number.POSITIVE_INFINITY): readonly ControlEvent[] => {
    const found: ControlEvent[] = [];
    for (const [index, step] of steps.slice(0, count).entries()) {
      if (index >= begun) {
        begun += 1;
        found.push({ event: "step", step: { ...stepJson(step), durationMs: null } });
      }
      // The end of the last one that is wanted comes with the beginning of the next.
      if (step.endedAtMs === null || ended.has(index) || index + 1 >= count) continue;
      ended.add(index);
      found.push({ event: "step", step: stepJson(step) });
    }
    return found;
  };
}

/** Wakes a reader when something has happened since it looked last, or after a second. */
function createWaking(events: ProjectContext["events"], id: number, signal: AbortSignal) {
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
