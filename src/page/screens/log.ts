import { stripVTControlCharacters } from "node:util";
import { html } from "hono/html";
import type { OneDeploymentJson } from "../../control/history.ts";
import { stepOf } from "../../runner/lines.ts";
import type { Markup } from "./markup.ts";

/** The end of a log, for a browser without JavaScript; with it, the whole log takes its place. */
export interface LogPart {
  readonly text: string;
  /** The place of its first byte in the log; 0: it is the whole log. */
  readonly fromByte: number;
}

interface Section {
  /** null: before the first step. */
  readonly name: string | null;
  readonly lines: readonly { readonly number: number; readonly text: string }[];
}

export function logView(
  { deployment, log }: OneDeploymentJson & { readonly log: LogPart },
  isOver: boolean,
): Markup {
  const { id, attempts, state } = deployment;
  const sections = sectionsOf(log.text);
  const isBad = state === "failed" || state === "timed_out";
  return html`<section class="log" id="log" data-live aria-label="Log" data-id="${id}" data-attempt="${attempts}" data-over="${isOver}" data-failed="${isBad}">
<div class="bar" role="toolbar" aria-label="Log">
<input type="search" id="find" placeholder="Search the log" aria-label="Search the log" data-js hidden><output id="hits" data-js hidden></output>
<button type="button" id="follow" aria-pressed="false" data-js hidden>Follow</button><button type="button" id="times" aria-pressed="false" data-js hidden>Time</button><button type="button" id="wrap" aria-pressed="true" data-js hidden>Wrap</button>
<a href="/api/deployments/${id}/log">Raw</a><a href="/api/deployments/${id}/log" download="deployment-${id}.log">Download</a><button type="button" popovertarget="keys" aria-label="Keys" data-js hidden>?</button></div>
<div id="keys" class="confirm" popover><h2>Keys</h2><dl class="keys"><dt><kbd>/</kbd></dt><dd>search</dd><dt><kbd>n</kbd> <kbd>N</kbd></dt><dd>next, previous match</dd><dt><kbd>f</kbd></dt><dd>follow</dd><dt><kbd>g</kbd> <kbd>G</kbd></dt><dd>beginning, end</dd><dt><kbd>t</kbd> <kbd>w</kbd></dt><dd>times, wrapping</dd><dt><kbd>e</kbd></dt><dd>fold or unfold all steps</dd></dl></div>
${log.fromByte > 0 && html`<p class="cut">The beginning is not shown here. <a href="/api/deployments/${id}/log">See the whole log</a></p>`}
<div id="lines" role="log" aria-live="off">${sections.map((section, index) => sectionView(section, index, (isBad && index === sections.length - 1) || !isOver))}</div>
<p class="tail" id="tail">${log.text === "" ? (isOver ? "It printed nothing." : "It has printed nothing yet.") : ""}</p>
<p id="said" class="unseen" aria-live="polite"></p><button type="button" id="more" class="more" hidden></button></section>`;
}

function sectionsOf(text: string): readonly Section[] {
  const sections: { name: string | null; lines: { number: number; text: string }[] }[] = [];
  const lines = text === "" ? [] : stripVTControlCharacters(text).replace(/\n$/, "").split("\n");
  for (const [index, line] of lines.entries()) {
    const name = stepOf(line);
    if (name !== null || sections.length === 0) sections.push({ name, lines: [] });
    if (name === null) sections.at(-1)?.lines.push({ number: index + 1, text: line });
  }
  return sections;
}

function sectionView({ name, lines }: Section, index: number, isOpen: boolean): Markup {
  const rows = lines.map(
    ({ number, text }) =>
      html`<p id="L${number}"><a href="#L${number}">${number}</a><span>${text}</span></p>`,
  );
  if (name === null) return html`<div>${rows}</div>`;
  return html`<details id="step-${index + 1}"${isOpen ? html` open` : ""}><summary>${name}</summary>${rows}</details>`;
}
