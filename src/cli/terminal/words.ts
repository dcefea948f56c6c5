import { formatDuration } from "../../config/duration.ts";
import type { DeploymentJson } from "../../control/deployment-json.ts";
import type { Colour } from "../../platform/terminal/terminal.ts";

/** How a state is said to a person, and in which colour. */
export const states: Readonly<
  Record<DeploymentJson["state"], { readonly text: string; readonly colour: Colour }>
> = {
  queued: { text: "queued", colour: "dim" },
  running: { text: "running", colour: "yellow" },
  succeeded: { text: "succeeded", colour: "green" },
  failed: { text: "failed", colour: "red" },
  timed_out: { text: "timed out", colour: "red" },
  cancelled: { text: "cancelled", colour: "yellow" },
  superseded: { text: "superseded", colour: "dim" },
  interrupted: { text: "interrupted", colour: "yellow" },
};

export function branchOf(ref: string): string {
  return ref.replace(/^refs\/heads\//, "");
}

export function shortCommit(commit: string): string {
  return commit.slice(0, 7);
}

/** A moment in the time zone of who reads it, to the minute: 2026-11-21 10:29. */
export function localTime(iso: string): string {
  const date = new Date(iso);
  const two = (value: number) => String(value).padStart(2, "0");
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("-");
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** How long ago a moment was: 4 min, 2 h 5 min, 9 days. */
export function since(iso: string): string {
  const ms = Math.max(0, Date.now() - Date.parse(iso));
  const hourMs = 3_600_000;
  if (ms >= 48 * hourMs) return `${Math.floor(ms / (24 * hourMs))} days`;
  return formatDuration(ms < 60_000 ? Math.floor(ms / 1_000) * 1_000 : ms).replace(/^0 ms$/, "0 s");
}
