import { html } from "hono/html";
import type { DeploymentJson, OneDeploymentJson, ProjectJson, StepJson } from "#calls/shapes";
import { callPath } from "#calls/table";
import { gitHosts, isGitHost } from "#config/git-hosts";
import { formatDuration } from "#config/values";
import { branchOf, shortCommit } from "#deployments/push";
import { failedText, type SiteRequests } from "#site-requests";
import { deployAction } from "./project.ts";
import {
  actionBar,
  ask,
  type Fact,
  type Screen,
  screenHead,
  type Visitor,
  type VisitorAction,
  type Wanted,
} from "./screen.ts";
import {
  ago,
  causeOf,
  commitTag,
  count,
  icon,
  isLive,
  isOver,
  looks,
  type Markup,
  shortTitle,
  shownCommit,
  stepTime,
  type Tone,
  titleOf,
} from "./words.ts";

/** A deployment; its log is loaded by the browser. */
export async function findDeployment({ run, visit, visitor }: Wanted, named: string): Promise<Screen> {
  const id = Number(named);
  const [{ projects }, found] = await Promise.all([
    ask(run, visit, "projects", {}),
    ask(run, visit, "deployment", { id }),
  ]);
  const project = projects.find(({ name }) => name === found.deployment.project) ?? null;
  return deploymentScreen(visitor, { ...found, project });
}

export interface DeploymentView extends OneDeploymentJson {
  /** null: it was removed. */
  readonly project: ProjectJson | null;
}

/** A deployment: one sentence, what was counted, its steps beside its log. */
export function deploymentScreen(visitor: Visitor, view: DeploymentView): Screen {
  const { deployment, steps, project } = view;
  const sentence = sentenceOf(deployment, project);
  const { tone } = looks[deployment.state];
  const { project: name, id } = deployment;
  const main = html`${screenHead([name, id], tone, sentence, about(view))}
<div id="actions" data-live>${actionBar(visitor, deploymentActions(visitor, deployment, project))}</div>
<div id="outcome" data-live>${problemBox(deployment)}${requestTable(deployment.requests)}</div>
<div class="split stack"><aside class="rail" aria-label="Steps"><div id="rail" data-live>${stepRail(deployment, steps)}${facts(deployment)}</div></aside>
${deploymentLog(deployment)}</div>`;
  const title = `${titleOf(deployment)}: ${looks[deployment.state].word.toLowerCase()} · ${name}`;
  return { title, tone, visitor, main, everySeconds: isOver(deployment) ? 0 : 3, script: "log.js" };
}

function sentenceOf(deployment: DeploymentJson, project: ProjectJson | null): string {
  const { state, requests, liveAt, durationMs, supersededBy } = deployment;
  const name = `“${shortTitle(deployment)}”`;
  const took = durationMs === null ? "" : ` after ${formatDuration(durationMs)}`;
  const proof = requests === null ? "" : `, and ${failedText(requests)} requests failed`;
  // For an older one, the last good version of that time is not known.
  const isLast = project?.last?.id === deployment.id;
  const kept = project?.live ? ` The last good version is ${shortCommit(project.live.commit)}.` : "";
  const stays = isLast ? (liveAt === null ? kept : " It had gone live before.") : "";
  const sentences: Readonly<Record<DeploymentJson["state"], string>> = {
    queued: `${name} waits${project?.paused ? ": the queue is paused" : " for its turn"}.`,
    running: liveAt === null ? `${name} is being deployed.` : `${name} is live, and is watched.`,
    succeeded: `${name} ${isLive(deployment, project) ? "is live" : "was deployed"}${proof}.`,
    failed: `${name} failed${took}.${stays}`,
    timed_out: `${name} took too long, and was ended${took}.${stays}`,
    cancelled: `${name} was cancelled.${stays}`,
    superseded: `${name} was superseded${supersededBy === null ? "" : ` by deployment ${supersededBy}`}.`,
    interrupted: `${name} was interrupted, and starts again.`,
    skipped: `${name} was skipped.`,
  };
  return sentences[state];
}

function about({ deployment, project }: DeploymentView): readonly Fact[] {
  const { startedAt, liveAt, durationMs, createdAt } = deployment;
  const liveAfter = startedAt && liveAt ? Date.parse(liveAt) - Date.parse(startedAt) : null;
  return [
    commitTag(project, deployment),
    causeOf(deployment),
    ago(createdAt),
    liveAfter !== null && `live after ${formatDuration(liveAfter)}`,
    durationMs !== null && liveAfter !== null && `done after ${formatDuration(durationMs)}`,
    deployment.state === "succeeded" &&
      html`<a href="/api/deployments/${deployment.id}/receipt" download="receipt-${deployment.id}.json">receipt</a>`,
  ];
}

function deploymentActions(
  visitor: Visitor,
  deployment: DeploymentJson,
  project: ProjectJson | null,
): readonly VisitorAction[] {
  const { state, ref, project: name } = deployment;
  if (!visitor.isOperator || !project?.isServed) return [];
  if (!isOver(deployment)) return [cancelAction(deployment)];
  const redeploy = deployAction(name, branchOf(ref), `Deploy ${branchOf(ref)} again`);
  return state === "succeeded" ? [redeploy, rollbackAction(deployment, project)] : [redeploy];
}

function cancelAction(deployment: DeploymentJson): VisitorAction {
  const { id, state, liveAt } = deployment;
  const after =
    liveAt === null
      ? "Services that it has not replaced yet stay as they are."
      : "While the guard watches, the version before it gets the requests again.";
  return {
    id: "cancel",
    path: callPath("cancel", { id }),
    label: "Cancel",
    isDangerous: true,
    question: `Cancel deployment ${id}?`,
    consequence:
      state === "running"
        ? `Its script is asked to end. ${after}`
        : "It does not start. A newer push is deployed as usual.",
  };
}

function rollbackAction(deployment: DeploymentJson, project: ProjectJson): VisitorAction {
  const { id, project: name } = deployment;
  const isPresent = isLive(deployment, project);
  const wanted = isPresent ? "The version before this one" : `“${titleOf(deployment)}”`;
  return {
    id: "rollback",
    path: callPath("rollback", { project: name }),
    values: isPresent ? {} : { version: String(id) },
    label: isPresent ? "Roll back" : "Roll back to this",
    question: `Go back to ${isPresent ? "the version before" : shortCommit(shownCommit(deployment))}?`,
    consequence: `${wanted} of ${name} gets the requests again. A later push goes forward.`,
    isDangerous: true,
  };
}

function problemBox({ problem, skipReason, waitReason }: DeploymentJson): Markup | null {
  if (problem !== null)
    return html`<section class="problem card stack" aria-label="What went wrong"><h2>${problem.title}</h2><p>${problem.detail}</p><p class="soft"><code>${problem.code}</code> <a href="#tail">To the failure</a></p></section>`;
  const why = skipReason ?? waitReason;
  if (why === null) return null;
  return html`<section class="reason card stack" aria-label="Why"><p>${why}</p></section>`;
}

/** What Caddy counted while the versions changed. */
function requestTable(sites: readonly SiteRequests[] | null): Markup | null {
  if (sites === null || sites.length === 0) return null;
  const of = (part: number, all: number) =>
    `${part.toLocaleString("en-US")} of ${all.toLocaleString("en-US")}`;
  return html`<section class="requests stack" aria-label="Requests while the versions changed">${sites.map(
    (site) => html`<div class="site card row">
<div><p class="figure"><b class="${site.failed === 0 ? "good" : "bad"}">${site.failed.toLocaleString("en-US")}</b> of ${site.requests.toLocaleString("en-US")} requests failed</p>
<p class="soft">${site.host}${site.brokeOff > 0 && `, ${site.brokeOff} broke off in the middle of the answer`}${site.left > 0 && `, ${count(site.left, "client")} left early`}</p></div>
<dl class="small soft"><dt>5xx before</dt><dd>${of(site.before.serverErrors, site.before.answers)}</dd><dt>5xx after</dt><dd>${of(site.after.serverErrors, site.after.answers)}</dd></dl></div>`,
  )}</section>`;
}

function facts(deployment: DeploymentJson): Markup {
  const { trigger, host, ref, author, attempts, cancelledBy } = deployment;
  const rows: readonly (readonly [string, string | null | undefined])[] = [
    ["Subject", shortTitle(deployment) === titleOf(deployment) ? null : titleOf(deployment)],
    ["Trigger", host === null ? trigger : `${trigger}, ${isGitHost(host) ? gitHosts[host].title : host}`],
    ["Branch", branchOf(ref)],
    ["Commit", shownCommit(deployment)],
    ["Author", author],
    ["Attempts", attempts > 1 ? String(attempts) : null],
    ["Cancelled by", cancelledBy?.name],
  ];
  const known = rows.filter(([, value]) => value);
  return html`<dl class="facts small">${known.map(([name, value]) => html`<dt class="soft">${name}</dt><dd class="clip">${value}</dd>`)}</dl>`;
}

/** One below the other, each leading to its part of the log. */
function stepRail(deployment: DeploymentJson, steps: readonly StepJson[]): Markup {
  const isToRun = deployment.state === "queued" || deployment.state === "interrupted";
  const own = isToRun ? [] : steps.filter(({ attempt }) => attempt === deployment.attempts);
  // The log has the steps of all attempts.
  const before = steps.length - own.length;
  return html`<ol class="steps">${own.map((step, index) => {
    const tone = stepTone(deployment, step, index === own.length - 1);
    return html`<li><a class="row" href="#step-${before + index + 1}">${icon(tone)}<span>${step.name}</span><small class="end soft">${stepTime(step)}</small></a></li>`;
  })}</ol>`;
}

/** A step that has not ended is the one that runs, or the one in which a deployment ended. */
function stepTone({ state }: DeploymentJson, { durationMs }: StepJson, isLast: boolean): Tone {
  if (durationMs === null && state === "running") return "busy";
  if (isLast && (state === "failed" || state === "timed_out")) return "bad";
  return isLast && state === "cancelled" ? "idle" : "good";
}

function deploymentLog(deployment: DeploymentJson): Markup {
  const { id, state, startedAt, finishedAt, exitCode } = deployment;
  const log = `/api/deployments/${id}/log`;
  return html`<link rel="preload" as="fetch" href="${log}?format=timed" crossorigin>
${logView(
  {
    log: `${log}?format=timed`,
    events: `/api/deployments/${id}/events`,
    state,
    exit: exitCode ?? "",
    started: startedAt ?? "",
    ended: (isOver(deployment) && finishedAt) || "",
  },
  html`<a href="${log}">Raw</a><a href="${log}" download="deployment-${id}.log">Download</a>`,
)}`;
}

/**
 * A log with its controls, which a script of the page fills.
 *
 * @param data what the script reads
 * @param links after the controls
 */
export function logView(data: Readonly<Record<string, string | number>>, links: Markup | null): Markup {
  const usual = { state: "running", exit: "", started: "", ended: "" };
  const attributes = Object.entries({ ...usual, ...data }).map(
    ([name, value]) => html` data-${name}="${String(value)}"`,
  );
  return html`<section class="log card" id="log" aria-label="Log"${attributes}>
<div class="bar row" id="bar" role="toolbar" aria-label="Log">
<input type="search" id="find" placeholder="Search" aria-label="Search the log" autocomplete="off" spellcheck="false" data-js hidden><output id="hits" class="soft" for="find" hidden></output>
<button type="button" id="previous" aria-label="Previous match" hidden>↑</button><button type="button" id="next" aria-label="Next match" hidden>↓</button>
<button type="button" id="follow" aria-pressed="false" hidden>Follow</button><button type="button" id="times" aria-pressed="false" data-js hidden>Time</button>
${links}</div>
<div id="lines" role="log" aria-live="off" aria-label="Lines" tabindex="0"></div>
<p class="tail soft" id="tail" role="status"><noscript>A script of this page shows the log, which a browser without JavaScript has as Raw.</noscript></p></section>`;
}
