import { html } from "hono/html";
import type { DeploymentJson, HistoryJson, LogPageJson, OneDeploymentJson, ProjectJson } from "#calls/shapes";
import { branchOf, shortCommit } from "#commit-names";
import { failedText, type SiteRequests } from "#site-requests";
import type { KnownVisitor } from "../visitor.ts";
import { logView, stepRail } from "./log.ts";
import { listProjects } from "./projects.ts";
import {
  actionBar,
  type Found,
  type Read,
  type Screen,
  type Viewer,
  type VisitorAction,
  type Wanted,
} from "./screen.ts";
import {
  ago,
  causeOf,
  commitLink,
  compareLink,
  count,
  icon,
  isOver,
  lasted,
  lookOf,
  type Markup,
  shortTitle,
  shownCommit,
  titleOf,
} from "./words.ts";

/** The good version before a deployment; null if there was none. */
async function goodBefore(read: Read, { id, project }: DeploymentJson): Promise<DeploymentJson | null> {
  const query = `project=${encodeURIComponent(project)}&before=${id}&state=succeeded&limit=1`;
  const answer = await read(`/deployments?${query}`);
  return answer.kind === "ok" ? ((answer.value as HistoryJson).deployments[0] ?? null) : null;
}

/** A deployment with the page of its log that the address asks for. */
export async function findDeployment({ viewer }: KnownVisitor, { read, query }: Wanted, id: string): Found {
  const [projects, answer] = await Promise.all([listProjects(read), read(`/deployments/${id}`)]);
  if (answer.kind === "refused") return answer;
  if ("kind" in projects) return projects;
  const one = answer.value as OneDeploymentJson;
  const to = query.get("to");
  const [log, good] = await Promise.all([
    read(`/deployments/${id}/log/page${to === null ? "" : `?to=${encodeURIComponent(to)}`}`),
    goodBefore(read, one.deployment),
  ]);
  if (log.kind === "refused") return log;
  const project = projects.find(({ name }) => name === one.deployment.project) ?? null;
  return deploymentScreen(viewer, {
    ...{ ...one, project, log: log.value as LogPageJson },
    before: good && shownCommit(good),
  });
}

export interface DeploymentView extends OneDeploymentJson {
  /** null: it was removed. */
  readonly project: ProjectJson | null;
  /** The commit that was live before; null if there was none. */
  readonly before: string | null;
  readonly log: LogPageJson;
}

/** A deployment: one sentence, what was counted, its steps beside its log. */
export function deploymentScreen(viewer: Viewer, view: DeploymentView): Screen {
  const { deployment, steps, project } = view;
  const sentence = sentenceOf(deployment, project);
  const { tone } = lookOf(deployment.state);
  const { project: name, id } = deployment;
  const main = html`<p class="crumbs"><a href="/">Projects</a><a href="/projects/${name}">${name}</a><span>${id}</span></p>
<div id="head" data-live><h1 class="with-icon">${icon(tone)}<span>${sentence}</span></h1><p class="sub">${about(view)}</p></div>
<div id="actions" data-live>${actionBar(viewer, deploymentActions(viewer, deployment, project))}</div>
<div id="outcome" data-live>${problemBox(deployment)}${requestTable(deployment.requests)}</div>
<div class="split"><aside class="rail" aria-label="Steps"><div id="rail" data-live>${stepRail(deployment, steps)}${facts(deployment)}</div></aside>
${logView(view)}</div>`;
  const title = `${titleOf(deployment)}: ${lookOf(deployment.state).word.toLowerCase()} · ${name}`;
  return { title, tone, viewer, main, everySeconds: isOver(deployment) ? 0 : 3, script: "log.js" };
}

function sentenceOf(deployment: DeploymentJson, project: ProjectJson | null): string {
  const { state, requests, liveAt, durationMs, supersededBy } = deployment;
  const name = `“${shortTitle(deployment)}”`;
  const took = durationMs === null ? "" : ` after ${lasted(durationMs)}`;
  const proof = requests === null ? "" : `, and ${failedText(requests)} requests failed`;
  const stays = project?.live ? ` ${shortCommit(project.live.commit)} stays live.` : "";
  const sentences: Readonly<Record<DeploymentJson["state"], string>> = {
    queued: `${name} waits for its turn.`,
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

function isLive(deployment: DeploymentJson, project: ProjectJson | null): boolean {
  return deployment.state === "succeeded" && project?.live?.commit === shownCommit(deployment);
}

function about({ deployment, project, before }: DeploymentView): Markup {
  const { startedAt, liveAt, durationMs, createdAt } = deployment;
  const commit = shownCommit(deployment);
  const link = project && commitLink(project, deployment, commit);
  const change = project && before && compareLink(project, deployment, { from: before, to: commit });
  const liveAfter = startedAt && liveAt ? Date.parse(liveAt) - Date.parse(startedAt) : null;
  return html`<span>${link ? html`<a class="sha" href="${link}" rel="noreferrer">${shortCommit(commit)}</a>` : html`<code class="sha">${shortCommit(commit)}</code>`}</span><span>${causeOf(deployment)}</span><span>${ago(createdAt)}</span>
${liveAfter !== null && html`<span>live after ${lasted(liveAfter)}</span>`}${durationMs !== null && liveAfter !== null && html`<span>done after ${lasted(durationMs)}</span>`}${change && html`<span><a href="${change}" rel="noreferrer">compare with ${shortCommit(before ?? "")}</a></span>`}`;
}

function deploymentActions(
  viewer: Viewer,
  deployment: DeploymentJson,
  project: ProjectJson | null,
): readonly VisitorAction[] {
  const { state, ref, project: name } = deployment;
  if (!viewer.isOperator || !project?.isServed) return [];
  if (!isOver(deployment)) return [cancelAction(deployment)];
  const redeploy: VisitorAction = {
    ...{ id: "redeploy", path: `/projects/${name}/deployments`, values: { ref: branchOf(ref) } },
    label: `Deploy ${branchOf(ref)} again`,
    question: `Deploy ${branchOf(ref)} of ${name}?`,
    consequence: "The branch is deployed as it is at the git host now.",
  };
  return state === "succeeded" ? [redeploy, rollbackAction(deployment, project)] : [redeploy];
}

function cancelAction(deployment: DeploymentJson): VisitorAction {
  const { id } = deployment;
  return {
    ...{ id: "cancel", path: `/deployments/${id}/cancel`, label: "Cancel", isDangerous: true },
    question: `Cancel deployment ${id}?`,
    consequence: afterCancel(deployment),
  };
}

function afterCancel({ state, liveAt }: DeploymentJson): string {
  if (state !== "running") return "It does not start. A newer push is deployed as usual.";
  if (liveAt !== null)
    return "Its script is asked to end. While the guard watches, the version before it gets the requests again.";
  return "Its script is asked to end. The version that is live stays live.";
}

function rollbackAction(deployment: DeploymentJson, project: ProjectJson): VisitorAction {
  const { id, project: name } = deployment;
  const common = { id: "rollback", path: `/projects/${name}/rollback`, isDangerous: true };
  if (isLive(deployment, project))
    return {
      ...{ ...common, label: "Roll back", question: `Go back to the version before?` },
      consequence: `The version of ${name} before this one gets the requests again.`,
    };
  return {
    ...{ ...common, values: { version: String(id) }, label: "Roll back to this" },
    question: `Go back to ${shortCommit(shownCommit(deployment))}?`,
    consequence: `“${titleOf(deployment)}” of ${name} gets the requests again. A later push goes forward.`,
  };
}

function problemBox({ problem, skipReason, waitReason }: DeploymentJson): Markup | null {
  const why = skipReason ?? waitReason;
  if (problem === null && why === null) return null;
  return html`<section class="problem" aria-label="What went wrong">${problem && html`<h2>${problem.title}</h2>`}<p>${problem?.detail ?? why}</p>${problem && html`<p class="soft"><code>${problem.code}</code> <a href="#tail">To the failure</a></p>`}</section>`;
}

/** What Caddy counted while the versions changed. */
function requestTable(sites: readonly SiteRequests[] | null): Markup | null {
  if (sites === null || sites.length === 0) return null;
  return html`<section class="requests" aria-label="Requests while the versions changed">${sites.map(
    ({
      host,
      requests,
      failed,
      brokeOff,
      left,
      before,
      after,
    }) => html`<div class="site ${failed === 0 ? "good" : "bad"}">
<p class="figure"><b>${failed.toLocaleString("en-US")}</b> <span>of ${requests.toLocaleString("en-US")} requests failed</span></p>
<p class="soft">${host}${brokeOff > 0 && `, ${brokeOff} broke off in the middle of the answer`}${left > 0 && `, ${count(left, "client")} left early`}</p>
<dl><dt>5xx before</dt><dd>${before.serverErrors.toLocaleString("en-US")} of ${before.answers.toLocaleString("en-US")}</dd><dt>5xx after</dt><dd>${after.serverErrors.toLocaleString("en-US")} of ${after.answers.toLocaleString("en-US")}</dd></dl></div>`,
  )}</section>`;
}

const hostNames: Readonly<Record<string, string>> = {
  ...{ github: "GitHub", gitlab: "GitLab", gitea: "Gitea", forgejo: "Forgejo", gogs: "Gogs" },
  ...{ "bitbucket-cloud": "Bitbucket", "bitbucket-data-center": "Bitbucket", pagure: "Pagure" },
};

function hostName(host: string): string {
  return hostNames[host] ?? host;
}

function facts(deployment: DeploymentJson): Markup {
  const { id, trigger, host, ref, author, attempts, exitCode, startedAt, createdAt, cancelledBy } =
    deployment;
  const waited = startedAt === null ? null : Date.parse(startedAt) - Date.parse(createdAt);
  const rows: readonly (readonly [string, string | null | undefined])[] = [
    ["Deployment", String(id)],
    ["Subject", shortTitle(deployment) === titleOf(deployment) ? null : titleOf(deployment)],
    ["Trigger", host === null ? trigger : `${trigger}, ${hostName(host)}`],
    ["Branch", branchOf(ref)],
    ["Commit", shownCommit(deployment)],
    ["Author", author],
    ["Waited", waited === null ? null : lasted(Math.max(0, waited))],
    ["Attempts", attempts > 1 ? String(attempts) : null],
    ["Exit code", exitCode === null ? null : String(exitCode)],
    ["Cancelled by", cancelledBy?.name],
  ];
  const known = rows.filter(([, value]) => value);
  return html`<dl class="facts">${known.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}
