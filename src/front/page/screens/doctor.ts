import { html } from "hono/html";
import type { CheckJson, ExaminationJson } from "#calls/shapes";
import { ask, type Found, type Screen, screenHead, type Visitor, type Wanted } from "./screen.ts";
import { ago, count, icon, type Markup, type Tone } from "./words.ts";

/** What the doctor has found of a project. */
export async function findExamination({ run, visit, visitor }: Wanted, project: string): Found {
  const answer = await ask(run, visit, "doctor", { project });
  return answer.kind === "refused" ? answer : doctorScreen(visitor, answer.value);
}

const whileRunningSeconds = 2;

/** What `hotpush doctor` has found: what is wrong with its fix on top, all else folded. */
export function doctorScreen(
  visitor: Visitor,
  { project, isRunning, examinedAt, report }: ExaminationJson,
): Screen {
  const { tone, sentence } = summaryOf(project, isRunning, report);
  const faulty = report?.checks.filter(({ outcome }) => outcome === "faulty") ?? [];
  const about = html`${examinedAt && html`<span>examined ${ago(examinedAt)}</span>`}${isRunning && html`<span>it is looking now</span>`}${report && html`<span>${count(report.passed, "check")} passed</span>`}`;
  const crumbs = [
    [`/projects/${project}`, project],
    ["", "Doctor"],
  ] as const;
  const main = html`${screenHead(crumbs, { tone, sentence, about })}
<div id="doctor" data-live><ul class="faults">${faulty.flatMap((check) => check.faults.map((fault) => faultItem(check, fault)))}</ul>
${report && passedChecks(report.checks)}</div>`;
  const title = `${sentence.replace(/\.$/, "")} · Hotpush`;
  return { title, tone, visitor, main, everySeconds: isRunning ? whileRunningSeconds : 0 };
}

function summaryOf(
  project: string,
  isRunning: boolean,
  report: ExaminationJson["report"],
): { readonly tone: Tone; readonly sentence: string } {
  if (report === null)
    return isRunning
      ? { tone: "busy", sentence: `The doctor examines ${project}.` }
      : { tone: "bad", sentence: `The doctor could not examine ${project}.` };
  const { problems, warnings } = report;
  const also = warnings === 0 ? "" : ` and ${count(warnings, "warning")}`;
  if (problems > 0) return { tone: "bad", sentence: `${project} has ${count(problems, "problem")}${also}.` };
  if (warnings > 0) return { tone: "idle", sentence: `${project} has ${count(warnings, "warning")}.` };
  return { tone: "good", sentence: `Nothing is wrong with ${project}.` };
}

function faultItem({ group, subject }: CheckJson, fault: CheckJson["faults"][number]): Markup {
  const { severity, text, command, change } = fault;
  return html`<li class="fault ${severity}"><p class="soft">${icon(severity === "problem" ? "bad" : "idle")} ${group}: ${subject}</p><p class="text">${text}</p>
${change && html`<p class="text">${change}</p>`}${command && html`<pre><code>${command}</code></pre>`}</li>`;
}

function passedChecks(checks: readonly CheckJson[]): Markup {
  const others = checks.filter(({ outcome }) => outcome !== "faulty");
  return html`<details class="passed"><summary>${count(others.length, "check")} without a finding</summary><ul>${others.map(
    ({ group, subject, outcome, fact }) =>
      html`<li>${icon(outcome === "ok" ? "good" : "idle")}<span><b>${group}</b>: ${subject}${fact && html` <span class="soft">${fact}</span>`}</span></li>`,
  )}</ul></details>`;
}
