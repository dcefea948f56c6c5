import { stripVTControlCharacters } from "node:util";
import { html } from "hono/html";
import type { DeploymentJson, LogPageJson, OneDeploymentJson, StepJson } from "#calls/shapes";
import { stepOf } from "#runner/lines";
import { icon, isOver, lasted, type Markup, type Tone } from "./words.ts";

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

interface Line {
  readonly number: number;
  readonly text: string;
}

interface Section {
  /** null: before the first step. */
  readonly name: string | null;
  readonly lines: readonly Line[];
}

/** The log with its controls, which only show if the browser runs them. */
export function logView(view: OneDeploymentJson & { readonly log: LogPageJson }): Markup {
  const { deployment, log, steps } = view;
  const { id, state, startedAt, exitCode } = deployment;
  const over = isOver(deployment);
  return html`<link rel="preload" as="fetch" href="/api/deployments/${id}/log?format=timed" crossorigin>
<section class="log with-wrap" id="log" aria-label="Log" data-id="${id}" data-over="${String(over)}" data-state="${state}" data-exit="${exitCode ?? ""}" data-started="${startedAt ?? ""}" data-steps="${JSON.stringify(steps)}">
${bar(id)}
${pageLinks(id, log)}
<div id="lines" role="log" aria-live="off" aria-label="Lines" tabindex="0">${sectionViews(view)}</div>
<p class="tail" id="tail">${log.lines.length === 0 ? (over ? "It printed nothing." : "It has printed nothing yet.") : ""}</p>
<p id="said" class="unseen" role="status"></p><button type="button" id="more" class="primary more" hidden></button></section>`;
}

/** For a browser without JavaScript; with it, the whole log takes the place of its last page. */
function pageLinks(id: number, { before, after, firstNumber, lines }: LogPageJson): Markup | null {
  if (before === null && after === null) return null;
  const to = (byte: number) => `/deployments/${id}?to=${byte}#log`;
  return html`<nav class="cut" id="pages" aria-label="Pages of the log">Lines ${firstNumber} to ${firstNumber + lines.length - 1}
${before !== null && html`<a href="${to(before)}">Earlier lines</a>`} ${after !== null && html`<a href="${to(after)}">Later lines</a> <a href="/deployments/${id}#log">Last lines</a>`}</nav>`;
}

function bar(id: number): Markup {
  const log = `/api/deployments/${id}/log`;
  return html`<div class="bar" id="bar" role="toolbar" aria-label="Log">
<input type="search" id="find" placeholder="Search" aria-label="Search the log" autocomplete="off" spellcheck="false" data-js hidden><output id="hits" for="find" hidden></output>
<button type="button" id="previous" aria-label="Previous match" hidden>↑</button><button type="button" id="next" aria-label="Next match" hidden>↓</button>
<button type="button" id="follow" aria-pressed="false" hidden>Follow</button><button type="button" id="times" aria-pressed="false" data-js hidden>Time</button><button type="button" id="wrap" aria-pressed="true" data-js hidden>Wrap</button>
<a href="${log}">Raw</a><a href="${log}" download="deployment-${id}.log">Download</a></div>`;
}

function sectionViews({
  deployment,
  log,
  steps,
}: OneDeploymentJson & { readonly log: LogPageJson }): readonly Markup[] {
  const sections = sectionsOf(log);
  const named = sections.filter(({ name }) => name !== null);
  // If the beginning is not here, the steps that are here are the last ones.
  const before = log.before === null ? 0 : Math.max(0, steps.length - named.length);
  return sections.map((section) => {
    if (section.name === null) return html`<div>${linesView(section.lines)}</div>`;
    const index = before + named.indexOf(section);
    return stepView(deployment, section, {
      step: steps[index],
      number: index + 1,
      isLast: section === named.at(-1),
    });
  });
}

interface StepPlace {
  readonly step: StepJson | undefined;
  readonly number: number;
  readonly isLast: boolean;
}

function stepView(
  deployment: DeploymentJson,
  { name, lines }: Section,
  { step, number, isLast }: StepPlace,
): Markup {
  const isOpen = isLast || deployment.state === "succeeded";
  const tone = step && stepTone(deployment, step, isLast);
  return html`<details id="step-${number}" class="${tone ?? ""}"${isOpen ? html` open` : ""}><summary><span>${name}</span>${step && stepTime(step)}</summary>${linesView(lines)}</details>`;
}

function linesView(lines: readonly Line[]): Markup {
  return html`<div class="block">${lines.map(({ number, text }) => html`<p id="L${number}"><a href="#L${number}">${number}</a><span>${text}</span></p>`)}</div>`;
}

function sectionsOf({ lines, firstNumber }: LogPageJson): readonly Section[] {
  const sections: { name: string | null; lines: Line[] }[] = [];
  for (const [index, { line }] of lines.entries()) {
    const text = stripVTControlCharacters(line);
    const name = stepOf(text);
    if (name !== null || sections.length === 0) sections.push({ name, lines: [] });
    if (name === null) sections.at(-1)?.lines.push({ number: firstNumber + index, text });
  }
  return sections;
}
