import { html } from "hono/html";
import { missedTexts } from "#calls/missed";
import type { DeploymentJson, HistoryJson, ProjectJson } from "#calls/shapes";
import { callPath } from "#calls/table";
import { formatDuration } from "#config/values";
import { shortCommit } from "#deployments/push";
import { failedText } from "#site-requests";
import { projectLook } from "./projects.ts";
import {
  actionBar,
  ask,
  type Fact,
  nothingHere,
  type Screen,
  screenHead,
  type Visitor,
  type VisitorAction,
  type Wanted,
} from "./screen.ts";
import { ago, causeOf, commitTag, icon, isLive, lookEvery, looks, type Markup, titleOf } from "./words.ts";

const entriesOnScreen = 20;

/** A project with the deployments that the address asks for. */
export async function findProject({ run, visit, visitor, query }: Wanted, name: string): Promise<Screen> {
  const asked = { ...Object.fromEntries(query), project: name, limit: entriesOnScreen };
  const [{ projects }, history] = await Promise.all([
    ask(run, visit, "projects", {}),
    ask(run, visit, "history", asked),
  ]);
  return projectScreen(visitor, projects.find((one) => one.name === name) ?? nothingHere(), history, query);
}

/** What was deployed of a project, as far as the `query` of the address asks for it, and what can be done with it. */
export function projectScreen(
  visitor: Visitor,
  project: ProjectJson,
  history: HistoryJson,
  query: URLSearchParams,
): Screen {
  const state = query.get("state");
  const { tone, word } = projectLook(project);
  const sentence = `${project.name}: ${word.toLowerCase()}`;
  const logs = visitor.isOperator && html`<a href="/projects/${project.name}/logs">running logs</a>`;
  const main = html`${screenHead(null, tone, sentence, [...aboutProject(project), logs])}
<div id="actions" data-live>${actionBar(visitor, projectActions(visitor, project))}</div>
<div class="heading row"><h2>Deployments</h2>${filters(project.name, state)}</div>
<div id="history" data-live>${history.deployments.length === 0 ? nothing(state) : html`<ol class="history card">${history.deployments.map((one) => entry(one, project))}</ol>`}
${olderLink(project.name, state, history.next)}</div>`;
  return { title: `${sentence} · Hotpush`, tone, visitor, main, everySeconds: lookEvery(tone) };
}

function aboutProject(project: ProjectJson): readonly Fact[] {
  const { last, live, branches, repoPath, waiting, paused } = project;
  return [
    live &&
      html`${last && isLive(last, project) ? "live" : "last good"}: <code class="sha">${shortCommit(live.commit)}</code> ${live.subject ?? ""}${live.since && html`, ${ago(live.since)}`}`,
    branches.join(" and "),
    repoPath && html`<code>${repoPath}</code>`,
    waiting > 0 && `${waiting} waiting`,
    ...missedTexts(project).map(({ at, text }) => html`${ago(at)}: ${text}`),
    paused &&
      html`paused ${ago(paused.since)}${paused.by && ` by ${paused.by.name}`}${paused.reason && `: ${paused.reason}`}`,
  ];
}

function projectActions(visitor: Visitor, project: ProjectJson): readonly VisitorAction[] {
  const { name, branches, paused, isServed } = project;
  if (!isServed || !visitor.isOperator) return [];
  return [
    ...branches.map((branch) => deployAction(name, branch, `Deploy ${branch}`)),
    pauseAction(name, paused !== null),
  ];
}

export function deployAction(name: string, branch: string, label: string): VisitorAction {
  return {
    id: `deploy-${branch}`,
    path: callPath("deploy", { project: name }),
    values: { ref: branch },
    label,
    question: `Deploy ${branch} of ${name}?`,
    consequence: "The branch is deployed as it is at the git host now, also if that commit is live already.",
  };
}

function pauseAction(name: string, isPaused: boolean): VisitorAction {
  if (isPaused)
    return {
      id: "resume",
      path: callPath("resume", { project: name }),
      label: "Resume",
      question: `Go on with ${name}?`,
      consequence: "What waits is deployed, one after the other.",
    };
  return {
    id: "pause",
    path: callPath("pause", { project: name }),
    label: "Pause",
    question: `Pause ${name}?`,
    consequence:
      "Nothing changes on the server, and a running deployment goes on. Pushes are received, and wait.",
    asksFor: { name: "reason", label: "Why, for the others" },
  };
}

const states = ["succeeded", "failed", "timed_out", "cancelled", "superseded", "skipped"] as const;

function filters(project: string, wanted: string | null): Markup {
  const links = [["all", null], ...states.map((state) => [state.replace("_", " "), state] as const)] as const;
  return html`<nav class="filters small soft" aria-label="Filter">${links.map(
    ([label, state]) =>
      html`<a href="/projects/${project}${state === null ? "" : `?state=${state}`}"${state === wanted ? html` aria-current="true"` : ""}>${label}</a>`,
  )}</nav>`;
}

function entry(deployment: DeploymentJson, project: ProjectJson): Markup {
  const { id, state, durationMs, createdAt, requests, problem } = deployment;
  const { tone, word } = looks[state];
  return html`<li class="entry">${icon(tone)}
<div class="what"><a href="/deployments/${id}" class="clip">${titleOf(deployment)}</a><small class="soft clip">${causeOf(deployment)}${problem && ` · ${problem.title}`}${requests && ` · ${failedText(requests)} requests failed`}</small></div>
<span class="tag small ${tone}">${isLive(deployment, project) ? "Live" : word}</span>${commitTag(project, deployment)}
<span class="took small soft">${durationMs === null ? "" : formatDuration(durationMs)}</span><span class="when small soft">${ago(createdAt)}</span></li>`;
}

function nothing(state: string | null): Markup {
  if (state !== null)
    return html`<div class="empty card"><p>None of the deployments is ${state.replace("_", " ")}.</p></div>`;
  return html`<div class="empty card"><p>Nothing was deployed yet. Push, or deploy the branch as it is.</p></div>`;
}

function olderLink(project: string, state: string | null, next: number | null): Markup | null {
  if (next === null) return null;
  const wanted = new URLSearchParams({ ...(state && { state }), before: String(next) });
  return html`<p><a class="button" href="/projects/${project}?${wanted}">Older</a></p>`;
}
