import { html } from "hono/html";
import type { DeploymentJson, ProjectJson, StepJson } from "#calls/shapes";
import { formatDuration } from "#config/values";
import { shortCommit } from "#deployments/push";
import { failedText } from "#site-requests";
import { ask, type Screen, type Visitor, type Wanted } from "./screen.ts";
import {
  ago,
  causeOf,
  count,
  liveVersion,
  lookEvery,
  looks,
  type Markup,
  type StateLook,
  stateWord,
  stepTime,
  type Tone,
  titleOf,
} from "./words.ts";

/** All projects, each with its last deployments and the step that runs. */
export async function findProjects(wanted: Wanted): Promise<Screen> {
  const { projects } = await ask(wanted.run, wanted.visit, "projects", {});
  return projectsScreen(
    wanted.visitor,
    await Promise.all(projects.map((project) => cardOf(wanted, project))),
  );
}

const barsOfCard = 24;

async function cardOf({ run, visit }: Wanted, project: ProjectJson): Promise<ProjectCard> {
  const { last, isServed, name } = project;
  const history = isServed ? await ask(run, visit, "history", { project: name, limit: barsOfCard }) : null;
  const running = last?.state === "running" ? await ask(run, visit, "deployment", { id: last.id }) : null;
  return { project, deployments: history?.deployments ?? [], steps: running?.steps ?? [] };
}

/** A project with what the screen shows of it. */
export interface ProjectCard {
  readonly project: ProjectJson;
  /** The newest first. */
  readonly deployments: readonly DeploymentJson[];
  /** Of the one that runs. */
  readonly steps: readonly StepJson[];
}

/** All projects on one screen: what is live of each, what runs, what waits. */
export function projectsScreen(visitor: Visitor, cards: readonly ProjectCard[]): Screen {
  const { sentence, tone } = overview(cards);
  const main = html`<div id="projects" data-live>
<h1>${sentence}</h1>
${cards.length === 0 ? emptyState() : html`<p class="sub soft">${proofOf(cards)}</p><ul class="projects stack">${cards.map(row)}</ul>`}
</div>`;
  return {
    title: `${sentence.replace(/\.$/, "")} · Hotpush`,
    tone,
    visitor,
    main,
    everySeconds: lookEvery(tone),
  };
}

function overview(cards: readonly ProjectCard[]): { readonly sentence: string; readonly tone: Tone } {
  const named = (tone: Tone) =>
    cards.map(({ project }) => project).filter((project) => projectLook(project).tone === tone);
  const busy = named("busy");
  const bad = named("bad");
  const live = cards
    .map(({ project }) => project)
    .filter((project) => project.isServed && liveVersion(project) !== null);
  if (cards.length === 0) return { sentence: "No projects yet.", tone: "idle" };
  const does = busy.every((one) => projectLook(one).word === "Waiting") ? "waiting" : "deploying";
  if (busy.length > 0)
    return { sentence: `${list(busy)} ${busy.length === 1 ? "is" : "are"} ${does}.`, tone: "busy" };
  if (bad.length > 0)
    return { sentence: `${list(bad)} ${bad.length === 1 ? "needs" : "need"} you.`, tone: "bad" };
  const isWhole = live.length === cards.length;
  const tone = named("good").length === cards.length ? "good" : "idle";
  if (isWhole && live.length > 1) return { sentence: "Everything is live.", tone };
  const who = isWhole ? list(live) : `${live.length} of ${cards.length} projects`;
  return { sentence: `${who} ${live.length === 1 ? "is" : "are"} live.`, tone };
}

function list(projects: readonly ProjectJson[]): string {
  const names = projects.map(({ name }) => name);
  if (names.length > 3) return count(names.length, "project");
  return new Intl.ListFormat("en-GB").format(names);
}

function proofOf(cards: readonly ProjectCard[]): Markup {
  const requests = cards.flatMap(({ deployments }) => deployments.flatMap((one) => one.requests ?? []));
  const newest = cards.flatMap(({ deployments }) => deployments[0] ?? []).map(({ createdAt }) => createdAt);
  const last = newest.sort().at(-1);
  return html`<span>${count(cards.length, "project")}</span>${last && html`<span>last deployment ${ago(last)}</span>`}${
    requests.length > 0 && html`<span>${failedText(requests)} requests failed while versions changed</span>`
  }`;
}

/** State of a project. It is live only if its last deployment succeeded. */
export function projectLook({ last, paused, live, fault, isServed }: ProjectJson): StateLook {
  if (fault !== null) return { tone: "bad", word: "Faulty settings" };
  if (!isServed) return { tone: "idle", word: "Removed" };
  if (last?.state === "running") return { tone: "busy", word: "Deploying" };
  if (last?.state === "failed" || last?.state === "timed_out") return { tone: "bad", word: "Failed" };
  if (paused !== null) return { tone: "idle", word: "Paused" };
  if (last?.state === "queued" || last?.state === "interrupted") return { tone: "busy", word: "Waiting" };
  if (last?.state === "cancelled") return looks.cancelled;
  return live ? { tone: "good", word: "Live" } : { tone: "idle", word: "Nothing deployed" };
}

function row({ project, deployments, steps }: ProjectCard): Markup {
  const { name, branches } = project;
  const look = projectLook(project);
  const median = medianMs(deployments);
  return html`<li class="project card stack ${look.tone}">
<div class="name"><h2><a href="/projects/${name}">${name}</a></h2><span class="small soft">${hostOf(deployments) ?? branches.join(", ")}</span></div>
<div class="live"><p>${stateWord(look)}</p>${liveLines(project, steps.at(-1))}</div>
<div class="recent">${deployments.length > 0 && durationChart(deployments)}${median !== null && html`<small class="soft">median ${formatDuration(median)}</small>`}</div></li>`;
}

/** Where its visitors reach it, by the last requests that were counted. */
function hostOf(deployments: readonly DeploymentJson[]): string | null {
  return deployments.find(({ requests }) => requests?.length)?.requests?.[0]?.host ?? null;
}

/** @param running the step that runs */
function liveLines(
  { live, last, waiting, paused, fault }: ProjectJson,
  running: StepJson | undefined,
): Markup {
  const isNews = last !== null && last.state !== "succeeded";
  const before = last?.liveAt ? "before it: " : "last good: ";
  return html`${isNews && html`<p class="line clip"><a href="/deployments/${last.id}"><code class="sha">${shortCommit(last.checkedOutCommit ?? last.commit)}</code> ${titleOf(last)}</a> <span class="soft">${causeOf(last)}, ${ago(last.createdAt)}</span></p>`}
${running && html`<p class="small soft clip">${running.name}, for ${stepTime(running)}</p>`}
${live && html`<p class="line clip ${isNews ? "soft" : ""}">${isNews ? before : ""}<code class="sha">${shortCommit(live.commit)}</code> ${live.subject ?? ""} <span class="soft">${live.author && `by ${live.author}, `}${live.since && ago(live.since)}</span></p>`}
${!isNews && last?.requests && html`<p class="small soft">${failedText(last.requests)} requests failed</p>`}
${fault && html`<p class="small bad">${fault}</p>`}
${last?.problem && html`<p class="small soft clip">${last.problem.title}</p>`}
${paused && html`<p class="small soft">paused ${paused.by && `by ${paused.by.name} `}${ago(paused.since)}${paused.reason && `: ${paused.reason}`}</p>`}
${waiting > 0 && html`<p class="small soft">${waiting === 1 ? "1 push" : `${waiting} pushes`} ${waiting === 1 ? "waits" : "wait"}</p>`}`;
}

function emptyState(): Markup {
  return html`<div class="empty card stack"><p>A project appears here when its first file is on this server.</p>
<pre><code>hotpush init</code></pre><p class="soft">Run it in the checkout of an app. It asks what it needs to know, and shows what it writes.</p></div>`;
}

const barWidth = 5.5;
const step = 9;
const height = 36;
const shortest = 4;

/**
 * The last deployments as bars: how long each took, and how it ended. A failed one is hollow. The newest is on the right. A bar
 * leads to its deployment for a pointer; the keyboard has the history, where each is once.
 */
function durationChart(newestFirst: readonly DeploymentJson[]): Markup {
  const shown = newestFirst
    .filter(({ state }) => state !== "superseded")
    .slice(0, barsOfCard)
    .reverse();
  const tallest = tallestMs(shown);
  const failed = shown.filter(({ state }) => looks[state].tone === "bad").length;
  const width = barsOfCard * step;
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
  const { id, state, durationMs } = deployment;
  const { tone, word } = looks[state];
  const took = durationMs === null ? "" : ` in ${formatDuration(durationMs)}`;
  const label = `${id}: ${titleOf(deployment)}. ${word}${took}`;
  const shown = tone === "idle" ? shortest : tall;
  return html`<a href="/deployments/${id}" tabindex="-1" aria-label="${label}"><title>${label}</title><rect x="${x}" y="0" width="${step}" height="${height}" fill="transparent"/><rect class="${tone === "bad" ? "bad hollow" : tone}" x="${x + 1.75}" y="${height - shown - 1}" width="${barWidth}" height="${shown}" rx="1.5"/></a>`;
}

function lengthOf({ durationMs, startedAt }: DeploymentJson): number {
  if (durationMs !== null) return durationMs;
  return startedAt === null ? 0 : Date.now() - Date.parse(startedAt);
}

/** Of those that succeeded; null if none did. */
function medianMs(deployments: readonly DeploymentJson[]): number | null {
  const lengths = deployments.flatMap(({ state, durationMs }) =>
    state === "succeeded" && durationMs !== null ? [durationMs] : [],
  );
  return lengths.sort((one, other) => one - other)[Math.floor(lengths.length / 2)] ?? null;
}
