import { findPause, pauseQueue, resumeQueue } from "../deployments/pauses.ts";
import type { Store } from "../platform/sqlite/store.ts";
import { printable } from "../platform/terminal/printable.ts";
import { instant, type ReportedJson, reportedJson } from "./deployment-json.ts";
import { jsonReply, type Route, refusal, reportedName } from "./route.ts";

/** A queue that is held, as commands print it with --json. */
export interface PauseJson {
  readonly since: string;
  readonly reason: string | null;
  readonly by: ReportedJson | null;
}

/** @returns null if the queue of the project is not paused */
export function pauseJson(store: Store): PauseJson | null {
  const pause = findPause(store);
  if (pause === null) return null;
  const { pausedAtMs, reason, pausedBy } = pause;
  return { since: instant(pausedAtMs), reason, by: reportedJson(pausedBy) };
}

const longestReason = 200;

/** Holds the queue of a project. A running deployment goes on. */
export const pauseProject: Route = ({ project, store, log }, { body }) => {
  const by = reportedName(body);
  const reason =
    typeof body.reason === "string" ? printable(body.reason, longestReason).trim() || null : null;
  store.transaction(() => pauseQueue(store, { reason, pausedBy: by }));
  log.info({ event: "control.pause", project, requestedBy: by, reason }, `The queue of ${project} is paused`);
  return jsonReply({ project, paused: pauseJson(store) });
};

export const resumeProject: Route = ({ project, store, queue, log }, { body }) => {
  const by = reportedName(body);
  if (!store.transaction(() => resumeQueue(store)))
    return refusal(409, `The queue of ${project} is not paused.`);
  log.info({ event: "control.resume", project, requestedBy: by }, `The queue of ${project} goes on`);
  queue.wake();
  return jsonReply({ project, paused: null });
};
