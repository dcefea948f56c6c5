import { html } from "hono/html";
import type { DeploymentJson, HistoryJson, OneDeploymentJson, ProjectJson, StepJson } from "#calls/shapes";
import { shortCommit } from "#commit-names";
import { failedText } from "#site-requests";
import type { Refused, RunAnswer } from "../run-client.ts";
import type { KnownVisitor } from "../visitor.ts";
import { durationChart, medianMs } from "./chart.ts";
import { stepRow } from "./log.ts";
import type { Found, Read, Screen, Viewer, Wanted } from "./screen.ts";
import {
  ago,
  causeOf,
  count,
  lasted,
  lookEvery,
  type Markup,
  type StateLook,
  stateWord,
  type Tone,
  titleOf,
} from "./words.ts";

/** All projects, each with its last deployments and the steps of the one that runs. */
export async function findProjects({ viewer }: KnownVisitor, { read }: Wanted): Found {
  const found = await listProjects(read);
  if ("kind" in found) return found;
  return projectsScreen(viewer, await Promise.all(found.map((project) => cardOf(read, project))));
}

/** All projects, or why they are not shown. */
export async function listProjects(read: Read): Promise<readonly ProjectJson[] | Refused> {
  const answer = await read("/projects");
  return answer.kind === "refused" ? answer : (answer.value as { projects: readonly ProjectJson[] }).projects;
}

const barsOfCard = 24;

async function cardOf(read: Read, project: ProjectJson): Promise<ProjectCard> {
  const { last, isServed, name } = project;
  const isRunning = last?.state === "running";
  const [history, one] = await Promise.all([
    isServed ? read(`/deployments?project=${name}&limit=${barsOfCard}`) : null,
    isRunning ? read(`/deployments/${last.id}`) : null,
  ]);
  const deployments = history?.kind === "ok" ? (history.value as HistoryJson).deployments : [];
  const good = isRunning ? deployments.find(({ state }) => state === "succeeded") : undefined;
  const known = good && (await read(`/deployments/${good.id}`));
  return { project, deployments, steps: stepsIn(one), usualSteps: stepsIn(known ?? null) };
}

function stepsIn(answer: RunAnswer | null): readonly StepJson[] {
  return answer?.kind === "ok" ? (answer.value as OneDeploymentJson).steps : [];
}

/** A project with what the screen shows of it. */
export interface ProjectCard {
  readonly project: ProjectJson;
  /** The newest first. */
  readonly deployments: readonly DeploymentJson[];
  /** Of the one that runs. */
  readonly steps: readonly StepJson[];
  /** Of the last good version: those that are likely to follow. */
  readonly usualSteps: readonly StepJson[];
}

/** All projects on one screen: what is live of each, what runs, what waits. */
export function projectsScreen(viewer: Viewer, cards: readonly ProjectCard[]): Screen {
  const { sentence, tone } = overview(cards);
  const main = html`<div id="projects" data-live>
<h1>${sentence}</h1>
${cards.length === 0 ? emptyState() : html`<p class="sub">${proofOf(cards)}</p><ul class="projects">${cards.map(row)}</ul>`}
</div>`;
  return {
    title: `${sentence.replace(/\.$/, "")} · Hotpush`,
    tone,
    viewer,
    main,
    everySeconds: lookEvery(tone),
  };
}

function overview(cards: readonly ProjectCard[]): { readonly sentence: string; readonly tone: Tone } {
  const looks = cards.map(({ project }) => projectLook(project));
  const named = (wanted: Tone) =>
    cards.filter((_, index) => looks[index]?.tone === wanted).map(({ project }) => project.name);
  const [busy, bad, good] = [named("busy"), named("bad"), named("good")];
  if (cards.length === 0) return { sentence: "No projects yet.", tone: "idle" };
  if (busy.length > 0)
    return { sentence: `${list(busy)} ${busy.length === 1 ? "is" : "are"} deploying.`, tone: "busy" };
  if (bad.length > 0)
    return { sentence: `${list(bad)} ${bad.length === 1 ? "needs" : "need"} you.`, tone: "bad" };
  if (good.length === cards.length)
    return { sentence: cards.length === 1 ? `${good[0]} is live.` : "Everything is live.", tone: "good" };
  const verb = good.length === 1 ? "is" : "are";
  return { sentence: `${good.length} of ${cards.length} projects ${verb} live.`, tone: "idle" };
}

function list(names: readonly string[]): string {
  if (names.length > 3) return count(names.length, "project");
  return names.length < 2 ? (names[0] ?? "") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

function proofOf(cards: readonly ProjectCard[]): Markup {
  const requests = cards.flatMap(({ deployments }) => deployments.flatMap((one) => one.requests ?? []));
  const newest = cards.flatMap(({ deployments }) => deployments[0] ?? []).map(({ createdAt }) => createdAt);
  const last = newest.sort().at(-1);
  return html`<span>${count(cards.length, "project")}</span>${last && html`<span>last deployment ${ago(last)}</span>`}${
    requests.length > 0 && html`<span>${failedText(requests)} requests failed while versions changed</span>`
  }`;
}

/** How a project is. While a version is served, a failure says so: nobody needs to hurry. */
export function projectLook({ last, paused, live, fault, isServed }: ProjectJson): StateLook {
  if (fault !== null) return { tone: "bad", word: "Faulty settings" };
  if (!isServed) return { tone: "idle", word: "Removed" };
  if (last?.state === "running") return { tone: "busy", word: "Deploying" };
  if (last?.state === "failed" || last?.state === "timed_out")
    return { tone: "bad", word: live ? "Failed, the old version serves" : "Failed" };
  if (paused !== null) return { tone: "idle", word: "Paused" };
  if (last?.state === "queued" || last?.state === "interrupted") return { tone: "busy", word: "Waiting" };
  return live ? { tone: "good", word: "Live" } : { tone: "idle", word: "Nothing deployed" };
}

function row({ project, deployments, steps, usualSteps }: ProjectCard): Markup {
  const { name, branches } = project;
  const look = projectLook(project);
  const median = medianMs(deployments);
  return html`<li class="project ${look.tone}">
<div class="name"><h2><a href="/projects/${name}">${name}</a></h2><span class="soft">${hostOf(deployments) ?? branches.join(", ")}</span></div>
<div class="live"><p>${stateWord(look)}</p>${liveLines(project)}</div>
<div class="recent">${deployments.length > 0 && durationChart(deployments, 24)}${median !== null && html`<small>median ${lasted(median)}</small>`}</div>
${project.last?.state === "running" && steps.length > 0 && html`<div class="progress">${stepRow(project.last, steps)}${nextSteps(steps, usualSteps)}</div>`}
</li>`;
}

/** Where its visitors reach it, by the last requests that were counted. */
function hostOf(deployments: readonly DeploymentJson[]): string | null {
  return deployments.find(({ requests }) => requests?.length)?.requests?.[0]?.host ?? null;
}

/** The steps that are likely to follow, as they did the last time. */
function nextSteps(steps: readonly StepJson[], usual: readonly StepJson[]): Markup | null {
  const at = usual.findIndex(({ name }) => name === steps.at(-1)?.name);
  const next = at < 0 ? [] : usual.slice(at + 1);
  if (next.length === 0) return null;
  return html`<ol class="steps next" aria-label="Steps that follow">${next.map(({ name, durationMs }) => html`<li><span>${name}</span>${durationMs !== null && html`<time>${lasted(durationMs)}</time>`}</li>`)}</ol>`;
}

function liveLines({ live, last, waiting, paused, fault }: ProjectJson): Markup {
  const isNews = last !== null && last.state !== "succeeded";
  return html`${isNews && html`<p class="line"><a href="/deployments/${last.id}"><code class="sha">${shortCommit(last.checkedOutCommit ?? last.commit)}</code> ${titleOf(last)}</a> <span class="soft">${causeOf(last)}, ${ago(last.createdAt)}</span></p>`}
${live && html`<p class="line ${isNews ? "soft" : ""}">${isNews ? "live meanwhile: " : ""}<code class="sha">${shortCommit(live.commit)}</code> ${live.subject ?? ""} <span class="soft">${live.author && `by ${live.author}, `}${live.since && ago(live.since)}</span></p>`}
${!isNews && last?.requests && html`<p class="proof">${failedText(last.requests)} requests failed</p>`}
${fault && html`<p class="proof bad">${fault}</p>`}
${last?.problem && html`<p class="proof">${last.problem.title}</p>`}
${paused && html`<p class="proof">paused ${paused.by && `by ${paused.by.name} `}${ago(paused.since)}${paused.reason && `: ${paused.reason}`}</p>`}
${waiting > 0 && html`<p class="proof">${waiting === 1 ? "1 push" : `${waiting} pushes`} ${waiting === 1 ? "waits" : "wait"}</p>`}`;
}

function emptyState(): Markup {
  return html`<div class="empty"><p>A project appears here when its first file is on this server.</p>
<pre><code>hotpush init</code></pre><p class="soft">Run it in the checkout of an app. It asks what it needs to know, and shows what it writes.</p></div>`;
}
