import { html } from "hono/html";
import type { DeploymentJson } from "#calls/shapes";
import { lasted, lookOf, type Markup, type Tone, titleOf } from "./words.ts";

const barWidth = 6;
const step = 9;
const height = 36;
const shortest = 4;

/**
 * The last deployments as bars: how long each took, and how it ended. A failed one is hollow. The newest is on the right. A bar
 * leads to its deployment for a pointer; the keyboard has the history, where each is once.
 */
export function durationChart(newestFirst: readonly DeploymentJson[], bars: number): Markup {
  const shown = newestFirst
    .filter(({ state }) => state !== "superseded")
    .slice(0, bars)
    .reverse();
  const tallest = tallestMs(shown);
  const failed = shown.filter(({ state }) => lookOf(state).tone === "bad").length;
  const width = bars * step;
  const left = width - shown.length * step;
  return html`<svg class="chart" viewBox="0 0 ${width} ${height}" preserveAspectRatio="xMaxYMax slice" role="group" aria-label="The last ${shown.length} deployments: ${failed} failed">
${shown.map((one, index) => bar(one, left + index * step, Math.max(shortest, Math.min(1, lengthOf(one) / tallest) * (height - 2))))}</svg>`;
}

/** One that took far longer than usual must not make all others flat. */
function tallestMs(shown: readonly DeploymentJson[]): number {
  const longest = Math.max(1, ...shown.map(lengthOf));
  return Math.min(longest, 2 * (medianMs(shown) ?? longest));
}

function bar(deployment: DeploymentJson, x: number, tall: number): Markup {
  const { id, state } = deployment;
  const { tone, word } = lookOf(state);
  const took = deployment.durationMs === null ? "" : ` in ${lasted(deployment.durationMs)}`;
  const label = `${id}: ${titleOf(deployment)}. ${word}${took}`;
  return html`<a href="/deployments/${id}" tabindex="-1" aria-label="${label}"><title>${label}</title><rect x="${x}" y="0" width="${step}" height="${height}" fill="transparent"/>${shape(tone, x + 1.5, tall)}</a>`;
}

function shape(tone: Tone, x: number, tall: number): Markup {
  const y = height - tall;
  if (tone === "bad")
    return html`<rect class="bad hollow" x="${x + 0.75}" y="${y + 0.75}" width="${barWidth - 1.5}" height="${Math.max(3, tall - 1.5)}" rx="1"/>`;
  const short = tone === "idle" ? shortest : tall;
  return html`<rect class="${tone}" x="${x}" y="${height - short}" width="${barWidth}" height="${short}" rx="2"/>`;
}

function lengthOf({ durationMs, startedAt }: DeploymentJson): number {
  if (durationMs !== null) return durationMs;
  return startedAt === null ? 0 : Date.now() - Date.parse(startedAt);
}

/** Of those that succeeded; null if none did. */
export function medianMs(deployments: readonly DeploymentJson[]): number | null {
  const lengths = deployments.flatMap(({ state, durationMs }) =>
    state === "succeeded" && durationMs !== null ? [durationMs] : [],
  );
  return lengths.sort((one, other) => one - other)[Math.floor(lengths.length / 2)] ?? null;
}
