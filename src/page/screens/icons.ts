import { html, raw } from "hono/html";
import type { DeploymentJson } from "../../calls/shapes.ts";
import type { Markup } from "./markup.ts";

/** What a state means to the reader. Each has a colour and a shape: no one needs the colour. */
export type Tone = "good" | "bad" | "busy" | "idle";

export interface StateLook {
  readonly tone: Tone;
  readonly word: string;
}

const looks: Readonly<Record<DeploymentJson["state"], StateLook>> = {
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

export function lookOf(state: DeploymentJson["state"]): StateLook {
  return looks[state];
}

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
  return html`<span class="state ${tone}">${icon(tone)}${word}</span>`;
}

export function mark(): Markup {
  return html`<svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true"><path fill="currentColor" d="M12 2.2 20 10.4h-4.6v4.2H8.6v-4.2H4z"/><path fill="currentColor" opacity=".55" d="M8.6 16.6h6.8v2H8.6z"/><path fill="currentColor" opacity=".3" d="M8.6 20.2h6.8v1.8H8.6z"/></svg>`;
}
