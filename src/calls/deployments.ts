import * as v from "valibot";
import { type Deployment, isFinished } from "#deployments/deployment";
import { findLastRef, findLatest, findRunning, listDeployments, listWaiting } from "#deployments/history";
import { isCommitId } from "#deployments/push";
import { findDeployment, findPause, listSteps } from "#deployments/store";
import type { Store } from "#platform/sqlite";
import { logBytes, logPath, readLogPage } from "#runner/log-file";
import {
  call,
  findContext,
  noDeployment,
  ofDeployment,
  ofProject,
  ofProjectOrAll,
  type ProjectContext,
  projectCall,
  type Refused,
  refuse,
  takes,
} from "./call.ts";
import { eventsIn } from "./events.ts";
import { logIn } from "./log.ts";
import * as shapes from "./shapes.ts";
import {
  deploymentJson,
  type HistoryJson,
  lineJson,
  pauseJson,
  type RequestedJson,
  stepJson,
} from "./shapes.ts";

const usualLimit = 20;
const noState = "There is no such state.";
const listed = {
  limit: takes.limit,
  before: takes.before,
  state: v.optional(v.picklist(shapes.states, noState)),
};

/** The calls about deployments. */
export const deploymentCalls = {
  history: call({
    does: "The deployments of a project, or of all, the newest first",
    ...{ method: "GET", path: "/deployments", right: "viewer", gives: shapes.history },
    takes: { ...ofProjectOrAll, ...listed },
    async handle(server, asked) {
      const found = await findContext(server, asked, false);
      return found !== null && "kind" in found ? found : list((found ?? server).store, asked);
    },
  }),
  projectHistory: projectCall({
    does: "The deployments of a project, the newest first",
    ...{ method: "GET", path: "/projects/:project/deployments", right: "viewer", gives: shapes.history },
    takes: { ...ofProject, ...listed },
    handle: ({ store }, asked) => list(store, asked),
  }),
  deployment: projectCall({
    does: "One deployment with its steps, and how long its log is",
    ...{ method: "GET", path: "/deployments/:id", right: "viewer", gives: shapes.oneDeployment },
    takes: ofDeployment,
    handle({ store, logStatePath }, { id }) {
      const found = wantedDeployment(store, id);
      if (found === null) return noDeployment(id);
      const steps = listSteps(store, found).map(stepJson);
      return {
        deployment: deploymentJson(found),
        steps,
        logBytes: logBytes(logPath(logStatePath, found.id)),
      };
    },
  }),
  log: projectCall({
    does: "What its script has printed: all, the lines that begin between two bytes, or those with a text",
    ...{ method: "GET", path: "/deployments/:id/log", right: "viewer", gives: "text/plain; charset=utf-8" },
    takes: {
      ...{ ...ofDeployment, from: v.optional(takes.place), to: v.optional(takes.place) },
      find: v.optional(v.string()),
      format: v.optional(v.picklist(["text", "ndjson", "timed"], "`format` must be text, ndjson or timed.")),
    },
    handle({ store, logStatePath }, { id, ...wanted }) {
      const found = wantedDeployment(store, id);
      return found === null ? noDeployment(id) : logIn(logPath(logStatePath, found.id), wanted);
    },
  }),
  logPage: projectCall({
    does: "The page of its log that ends at the byte `to`, else the last one",
    ...{ method: "GET", path: "/deployments/:id/log/page", right: "viewer", gives: shapes.logPage },
    takes: { ...ofDeployment, to: v.optional(takes.place) },
    handle({ store, logStatePath }, { id, to }) {
      const found = wantedDeployment(store, id);
      if (found === null) return noDeployment(id);
      const page = readLogPage(logPath(logStatePath, found.id), to);
      return { ...page, lines: page.lines.map(lineJson) };
    },
  }),
  events: projectCall({
    does: "What it has printed and done, then what it does; `from` is the place in the log after the last known line",
    ...{ method: "GET", path: "/deployments/:id/events", right: "viewer", gives: "application/x-ndjson" },
    takes: {
      ...{ ...ofDeployment, from: v.optional(takes.place) },
      follow: v.optional(v.picklist(["true", "false"], "`follow` must be true or false.")),
    },
    handle(project, { id, from = 0, follow }) {
      const found = wantedDeployment(project.store, id);
      if (found === null) return noDeployment(id);
      return eventsIn(project, found, { fromByte: from, isFollowing: follow !== "false" });
    },
  }),
  /** A person requests it, so it runs even if the same commit is deployed already. Like a push it supersedes what waits. */
  deploy: projectCall({
    does: "Deploy the branch as it is at the git host now",
    ...{ method: "POST", path: "/projects/:project/deployments", right: "operator", status: 202 },
    ...{ gives: shapes.requested, takes: { ...ofProject, ref: v.optional(takes.text) } },
    async handle(project, { ref }, { name: requestedBy }) {
      if (!project.isServed) return noSettings(project);
      const refs = candidateRefs(project, ref);
      if (refs === null) return refuse("input_invalid", notDeployed(project));
      const head = await findHead(project, refs);
      if (typeof head === "string") return refuse("not_possible", `Nothing to deploy: ${head}`);
      const { store, queue, log } = project;
      const deployment = queue.request({ trigger: "manual", ...head, requestedBy });
      const text = `Deployment ${deployment.id} was requested by a command`;
      log.info({ event: "control.deploy", deployment: deployment.id, ...head, requestedBy }, text);
      return requestedJson(store, deployment);
    },
  }),
  rollback: projectCall({
    does: "Go back to an earlier good version: that of a deployment or a commit, else the one before",
    ...{ method: "POST", path: "/projects/:project/rollback", right: "operator", status: 202 },
    ...{ gives: shapes.requested, takes: { ...ofProject, version: v.optional(takes.text) } },
    async handle(project, { version }, { name }) {
      if (!project.isServed) return noSettings(project);
      // Commands load this table too, and nothing of roll-outs.
      const { rollBack } = await import("./roll-back.ts");
      const found = await rollBack(project, version, name);
      return "kind" in found ? found : requestedJson(project.store, found);
    },
  }),
  /** A queued one is cancelled at once; a running one by terminating its script, which takes a moment. */
  cancel: projectCall({
    does: "Cancel a deployment that waits or runs; `latest` is the one that runs, else the next one",
    ...{ method: "POST", path: "/deployments/:id/cancel", right: "operator", status: 202 },
    ...{ gives: shapes.requested, takes: ofDeployment },
    handle({ store, queue, log }, { id: wanted }, { name: requestedBy }) {
      const latest = () => findRunning(store) ?? listWaiting(store)[0];
      const deployment = wanted === "latest" ? latest() : findDeployment(store, wanted);
      if (!deployment && wanted !== "latest") return noDeployment(wanted);
      if (!deployment)
        return refuse("not_possible", "No deployment runs or waits, so there is nothing to cancel.");
      const { id, state } = deployment;
      const ending = state.replace("_", " ");
      if (isFinished(state))
        return refuse(
          "not_possible",
          `Deployment ${id} is ${ending} already, so there is nothing to cancel.`,
        );
      if (!queue.cancel(id, requestedBy))
        return refuse(
          "not_possible",
          `Deployment ${id} cannot be cancelled right now (${state}). Try again in a second.`,
        );
      const text = `Deployment ${id} is cancelled by a command`;
      log.info({ event: "control.cancel", deployment: id, requestedBy }, text);
      return requestedJson(store, deployment);
    },
  }),
};

function list(
  store: Store,
  asked: {
    readonly limit?: number | undefined;
    readonly before?: number | undefined;
    readonly state?: Deployment["state"] | undefined;
  },
): HistoryJson {
  const { limit = usualLimit, before = Number.MAX_SAFE_INTEGER, state } = asked;
  const found = listDeployments(store, { limit: limit + 1, before, ...(state && { state }) });
  const deployments = found.slice(0, limit).map(deploymentJson);
  return { deployments, next: found.length > limit ? (deployments.at(-1)?.id ?? null) : null };
}

/** The deployment with `id`, or the one that runs, else the last that did. */
function wantedDeployment(store: Store, id: number | "latest"): Deployment | null {
  return id === "latest" ? findLatest(store) : findDeployment(store, id);
}

/** Its deployment would wait for settings that may never come. */
function noSettings({ project }: ProjectContext): Refused {
  return refuse("not_possible", `The file of project ${project} was removed, so nothing of it is deployed.`);
}

function requestedJson(store: Store, requested: Deployment): RequestedJson {
  const deployment = deploymentJson(findDeployment(store, requested.id) ?? requested);
  return { deployment, paused: pauseJson(findPause(store)) };
}

/** The requested branch, else the one deployed last, else every branch that is deployed; null if it is none of them. */
function candidateRefs(
  { store, refs }: ProjectContext,
  wanted: string | undefined,
): readonly string[] | null {
  if (wanted === undefined) {
    const last = findLastRef(store, refs);
    return last === null ? refs : [last];
  }
  const ref = `refs/heads/${wanted.replace(/^refs\/heads\//, "")}`;
  return refs.some((one) => one === ref) ? [ref] : null;
}

function notDeployed({ refs }: ProjectContext): string {
  const names = refs.map((ref) => ref.replace("refs/heads/", ""));
  const only =
    names.length > 1
      ? `Only the branches ${names.join(" and ")} are deployed.`
      : `Only the branch ${names[0]} is deployed, because BRANCH names it.`;
  return `${only} To go back to an earlier commit: hotpush rollback <commit>`;
}

/** The first of `refs` that the remote has, or the reasons why there is none. */
async function findHead(
  { readRemoteHead }: ProjectContext,
  refs: readonly string[],
): Promise<{ readonly ref: string; readonly commit: string } | string> {
  const reasons = new Set<string>();
  for (const ref of refs) {
    const head = await readRemoteHead(ref);
    if (head.kind === "head" && isCommitId(head.commit)) return { ref, commit: head.commit };
    reasons.add(head.kind === "head" ? `the remote gave no commit for ${ref}.` : head.detail);
  }
  return [...reasons].join(" ");
}
