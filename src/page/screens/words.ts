import { html } from "hono/html";
import type { DeploymentJson } from "../../calls/shapes.ts";
import { branchOf, shortCommit } from "../../commit-names.ts";
import type { Markup } from "./markup.ts";

const [second, minute, hour, day] = [1_000, 60_000, 3_600_000, 86_400_000] as const;

/** How long ago a moment was, in words: "12 minutes ago". The browser keeps it right. */
export function ago(iso: string, nowMs = Date.now()): Markup {
  return html`<time datetime="${iso}" title="${exactly(iso)}" data-ago>${agoText(nowMs - Date.parse(iso))}</time>`;
}

function agoText(ms: number): string {
  if (ms < 45 * second) return "just now";
  if (ms < 90 * minute) return count(Math.max(1, Math.round(ms / minute)), "minute", " ago");
  if (ms < 36 * hour) return count(Math.round(ms / hour), "hour", " ago");
  return count(Math.round(ms / day), "day", " ago");
}

function exactly(iso: string): string {
  return `${iso.slice(0, 19).replace("T", " ")} UTC`;
}

/** How long something took, as short as it can be read: `0.4 s`, `18 s`, `4 min 10 s`. */
export function lasted(ms: number): string {
  if (ms < 9_950) return `${(ms / second).toFixed(1)} s`;
  if (ms < minute) return `${Math.round(ms / second)} s`;
  const [minutes, seconds] = [Math.floor(ms / minute), Math.floor((ms % minute) / second)];
  if (minutes < 60) return seconds === 0 ? `${minutes} min` : `${minutes} min ${seconds} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** `1 push waits` takes a verb of its own; this is for nouns alone. */
export function count(number: number, noun: string, rest = ""): string {
  return `${number.toLocaleString("en-US")} ${noun}${number === 1 ? "" : "s"}${rest}`;
}

/** The commit that a deployment is about, as far as it is known. */
export function shownCommit({ checkedOutCommit, commit }: DeploymentJson): string {
  return checkedOutCommit ?? commit;
}

/** Names a deployment by the subject of its commit, or by the commit while that is not known. */
export function titleOf(deployment: DeploymentJson): string {
  return deployment.subject?.trim() || shortCommit(shownCommit(deployment));
}

const longestInSentence = 72;

/** The same, short enough for a sentence. */
export function shortTitle(deployment: DeploymentJson): string {
  const letters = [...titleOf(deployment)];
  if (letters.length <= longestInSentence) return letters.join("");
  return `${letters
    .slice(0, longestInSentence - 1)
    .join("")
    .trimEnd()}…`;
}

/** What has caused a deployment, and who: "Ann pushed to main". */
export function causeOf({ trigger, ref, pusher, requestedBy, author }: DeploymentJson): string {
  const branch = branchOf(ref);
  const by = requestedBy?.name ?? "Somebody";
  if (trigger === "rollback") return `${by} rolled back`;
  if (trigger === "manual") return `${by} deployed ${branch}`;
  if (trigger === "catch-up") return `found on ${branch}, without a webhook`;
  return `${pusher?.name ?? author ?? "Somebody"} pushed to ${branch}`;
}

export const isOver = ({ finishedAt, state }: DeploymentJson): boolean =>
  finishedAt !== null && state !== "queued" && state !== "running";
