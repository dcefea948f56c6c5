import { html, raw } from "hono/html";
import type { DeploymentJson, ProjectJson, StepJson } from "#calls/shapes";
import { formatDuration } from "#config/values";
import { branchOf, shortCommit } from "#deployments/push";
import { printable } from "#platform/terminal";

/** Escaped HTML. */
export type Markup = ReturnType<typeof html>;

/** What a state means to the reader. Each has a colour and a shape: no one needs the colour. */
export type Tone = "good" | "bad" | "busy" | "idle";

export interface StateLook {
  readonly tone: Tone;
  readonly word: string;
}

export const looks: Readonly<Record<DeploymentJson["state"], StateLook>> = {
  queued: { tone: "idle", word: "Waiting" },
  running: { tone: "busy", word: "Deploying" },
  succeeded: { tone: "good", word: "Succeeded" },
  failed: { tone: "bad", word: "Failed" },
  timed_out: { tone: "bad", word: "Timed out" },
  cancelled: { tone: "idle", word: "Cancelled" },
  superseded: { tone: "idle", word: "Superseded" },
  interrupted: { tone: "busy", word: "Interrupted" },
  skipped: { tone: "idle", word: "Skipped" },
};

/** How often a browser looks for changes, in seconds: a deployment that runs changes every moment. */
export function lookEvery(tone: Tone): number {
  return tone === "busy" ? 2 : 6;
}

/** A filled circle with a tick, a square with a cross, a turning ring, a hollow circle. */
const shapes: Readonly<Record<Tone, string>> = {
  good: '<circle cx="8" cy="8" r="7" fill="currentColor"/><path d="M4.8 8.3l2.2 2.2 4.3-4.6" fill="none" stroke="var(--card)" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round"/>',
  bad: '<rect x="1.5" y="1.5" width="13" height="13" rx="3" fill="currentColor"/><path d="M5.4 5.4l5.2 5.2M10.6 5.4l-5.2 5.2" stroke="var(--card)" stroke-width="1.8" stroke-linecap="round"/>',
  busy: '<circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-opacity=".25" stroke-width="2.4"/><path d="M8 2a6 6 0 0 1 6 6" fill="none" stroke="currentColor" stroke-width="2.4" stroke-linecap="round"/>',
  idle: '<circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-width="1.6"/><path d="M5.4 8h5.2" stroke="currentColor" stroke-width="1.6" stroke-linecap="round"/>',
};

/** Beside a word that says the same, so a screen reader passes over it. */
export function icon(tone: Tone): Markup {
  return html`<svg class="icon ${tone}" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">${raw(shapes[tone])}</svg>`;
}

export function stateWord({ tone, word }: StateLook): Markup {
  return html`<span class="state row ${tone}">${icon(tone)}${word}</span>`;
}

export function mark(size = 22): Markup {
  return html`<svg viewBox="0 0 24 24" width="${size}" height="${size}" aria-hidden="true"><path fill="currentColor" d="M12 2.2 20 10.4h-4.6v4.2H8.6v-4.2H4z"/><path fill="currentColor" opacity=".55" d="M8.6 16.6h6.8v2H8.6z"/><path fill="currentColor" opacity=".3" d="M8.6 20.2h6.8v1.8H8.6z"/></svg>`;
}

const minute = 60_000;
const hour = 3_600_000;
const day = 86_400_000;

/** How long ago a moment was, in words: "12 minutes ago". The browser keeps it right. */
export function ago(iso: string): Markup {
  return html`<time datetime="${iso}" title="${exactly(iso)}" data-ago>${agoText(Date.now() - Date.parse(iso))}</time>`;
}

function agoText(ms: number): string {
  if (ms < 45_000) return "just now";
  if (ms < 90 * minute) return count(Math.max(1, Math.round(ms / minute)), "minute", " ago");
  if (ms < 36 * hour) return count(Math.round(ms / hour), "hour", " ago");
  return count(Math.round(ms / day), "day", " ago");
}

function exactly(iso: string): string {
  return `${iso.slice(0, 19).replace("T", " ")} UTC`;
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
  return printable(titleOf(deployment), longestInSentence);
}

/** What has caused a deployment, and who: "Ann pushed to main". */
export function causeOf({ trigger, ref, pusher, requestedBy, author }: DeploymentJson): string {
  const branch = branchOf(ref);
  const by = requestedBy?.name ?? "Somebody";
  if (trigger === "rollback") return `${by} rolled back`;
  if (trigger === "manual") return `${by} deployed ${branch}`;
  if (trigger === "image") return "CI pushed a new image";
  if (trigger === "catch-up") return `found on ${branch}, without a webhook`;
  return `${pusher?.name ?? author ?? "Somebody"} pushed to ${branch}`;
}

export const isOver = ({ finishedAt, state }: DeploymentJson): boolean =>
  finishedAt !== null && state !== "queued" && state !== "running";

type Repository = Pick<ProjectJson, "webUrl">;
type Host = Pick<DeploymentJson, "host">;

/** The commit at its git host; null if that is not known. */
export function commitLink({ webUrl }: Repository, { host }: Host, commit: string): string | null {
  if (webUrl === null || !/^[0-9a-f]{40,64}$/.test(commit)) return null;
  const name = `${host} ${webUrl.split("/")[2]}`;
  // Their pages are at other addresses than what git clones.
  if (/data-center|gitness|harness/.test(name)) return null;
  if (/pagure/.test(name)) return `${webUrl}/c/${commit}`;
  if (/gitlab/.test(name)) return `${webUrl}/-/commit/${commit}`;
  return `${webUrl}/${/bitbucket/.test(name) ? "commits" : "commit"}/${commit}`;
}

/** The commit of a deployment, which leads to its git host if that is known. */
export function commitTag(repository: Repository | null, deployment: DeploymentJson): Markup {
  const commit = shownCommit(deployment);
  const link = repository && commitLink(repository, deployment, commit);
  const text = shortCommit(commit);
  return link === null
    ? html`<code class="sha">${text}</code>`
    : html`<a class="sha" href="${link}" rel="noreferrer" aria-label="The commit ${text}">${text}</a>`;
}

type LiveRecord = Pick<ProjectJson, "live" | "last">;

/**
 * The version that is live by the record, the one rule for all screens: the last that succeeded, unless a later one has had the
 * requests since and did not succeed. The page doesn't look at containers, so no screen says what serves after a failure.
 */
export function liveVersion({ live, last }: LiveRecord): ProjectJson["live"] {
  return last === null || last.state === "succeeded" || last.liveAt === null ? live : null;
}

export function isLive(deployment: DeploymentJson, project: LiveRecord | null): boolean {
  const live = project && liveVersion(project);
  return deployment.state === "succeeded" && live?.commit === shownCommit(deployment);
}

/** How long a step took, or has taken so far: the browser keeps that right. */
export function stepTime({ durationMs, startedAt }: StepJson): Markup {
  if (durationMs !== null) return html`<time>${formatDuration(durationMs)}</time>`;
  return html`<time data-since="${startedAt}">${formatDuration(Math.max(0, Date.now() - Date.parse(startedAt)))}</time>`;
}
