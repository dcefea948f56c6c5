import { html } from "hono/html";
import type { DeploymentJson, StepJson } from "../../calls/shapes.ts";
import { icon, type Tone } from "./icons.ts";
import type { Markup } from "./markup.ts";
import { lasted } from "./words.ts";

/** The steps of the last attempt. */
export function lastSteps({ attempts }: DeploymentJson, steps: readonly StepJson[]): readonly StepJson[] {
  return steps.filter(({ attempt }) => attempt === attempts);
}

/** A step that has not ended is the one that runs, or the one in which a deployment ended. */
export function stepTone({ state }: DeploymentJson, { durationMs }: StepJson, isLast: boolean): Tone {
  if (durationMs === null && state === "running") return "busy";
  if (isLast && (state === "failed" || state === "timed_out")) return "bad";
  return isLast && state === "cancelled" ? "idle" : "good";
}

/** Side by side, for a card. */
export function stepRow(deployment: DeploymentJson, steps: readonly StepJson[]): Markup {
  const own = lastSteps(deployment, steps);
  return html`<ol class="steps" aria-label="Steps">${own.map((step, index) => html`<li class="${stepTone(deployment, step, index === own.length - 1)}"><span>${step.name}</span>${stepTime(step)}</li>`)}</ol>`;
}

/** One below the other, each leading to its part of the log. */
export function stepRail(deployment: DeploymentJson, steps: readonly StepJson[]): Markup {
  const own = lastSteps(deployment, steps);
  // The log has the steps of all attempts.
  const before = steps.length - own.length;
  return html`<ol class="rail-steps">${own.map((step, index) => {
    const tone = stepTone(deployment, step, index === own.length - 1);
    return html`<li><a href="#step-${before + index + 1}">${icon(tone)}<span>${step.name}</span>${stepTime(step)}</a></li>`;
  })}</ol>`;
}

/** How long a step took, or has taken so far: the browser keeps that right. */
export function stepTime({ durationMs, startedAt }: StepJson): Markup {
  if (durationMs !== null) return html`<time>${lasted(durationMs)}</time>`;
  return html`<time data-since="${startedAt}">${lasted(Math.max(0, Date.now() - Date.parse(startedAt)))}</time>`;
}
