import * as v from "valibot";
import { liveCommit } from "#deployments/deployment";
import { findLastGood, findRunning, listDeployments } from "#deployments/history";
import { findPause, pauseQueue, resumeQueue } from "#deployments/store";
import {
  call,
  contextOf,
  ofProject,
  type ProjectContext,
  personText,
  projectCall,
  refuse,
  type ServerContext,
  takes,
} from "./call.ts";
import * as shapes from "./shapes.ts";
import { deploymentJson, instantOrNull, type ProjectJson, pauseJson } from "./shapes.ts";
import { webAddress } from "./web-address.ts";

/** The calls about projects. */
export const projectCalls = {
  projects: call({
    does: "All projects, and what is live of each",
    ...{ method: "GET", path: "/projects", right: "viewer", takes: {}, gives: shapes.projects },
    handle: (server) => ({ projects: listProjects(server) }),
  }),
  settings: projectCall({
    does: "The settings of a project as they are in force, without its secrets",
    ...{ method: "GET", path: "/projects/:project/settings", right: "viewer", takes: ofProject },
    gives: shapes.settings,
    handle: ({ project, settings, refs, fault }) => ({
      ...{ project, repoPath: settings.repoPath, repository: settings.repository, fault },
      branches: branchesOf(refs),
      ...{ deployPaths: settings.deployPaths, deployEnv: settings.deployEnv },
      checksSignatures: settings.allowedSigners !== null,
      hasPreviousSecret: settings.secrets.previous !== null,
      deployTimeoutMs: settings.deployTimeoutMs,
      deploySilenceMs: settings.deploySilenceMs,
      catchUpIntervalMs: settings.catchUpIntervalMs,
      notifies: settings.notify.targets.map(({ name }) => name),
    }),
  }),
  doctor: projectCall({
    does: "What the doctor has found; ask again while `isRunning`",
    ...{ method: "GET", path: "/projects/:project/doctor", right: "viewer", takes: ofProject },
    gives: shapes.examination,
    handle: ({ project, examiner }) =>
      examiner?.look(project) ??
      refuse(
        "not_possible",
        "Run hotpush doctor on the server: it needs the secret, which this service shows nobody.",
      ),
  }),
  /** A running deployment goes on. */
  pause: projectCall({
    does: "Hold the queue of a project",
    ...{ method: "POST", path: "/projects/:project/pause", right: "operator", gives: shapes.paused },
    takes: { ...ofProject, reason: v.optional(takes.text) },
    handle({ project, store, log }, asked, { name: pausedBy }) {
      const reason = personText(asked.reason);
      store.transaction(() => pauseQueue(store, { reason, pausedBy }));
      const text = `The queue of ${project} is paused`;
      log.info({ event: "control.pause", project, requestedBy: pausedBy, reason }, text);
      return { project, paused: pauseJson(findPause(store)) };
    },
  }),
  resume: projectCall({
    does: "Let the queue of a project go on",
    ...{ method: "POST", path: "/projects/:project/resume", right: "operator", takes: ofProject },
    gives: shapes.paused,
    handle({ project, store, queue, log }, _asked, { name: requestedBy }) {
      if (!store.transaction(() => resumeQueue(store)))
        return refuse("not_possible", `The queue of ${project} is not paused.`);
      log.info({ event: "control.resume", project, requestedBy }, `The queue of ${project} goes on`);
      queue.wake();
      return { project, paused: null };
    },
  }),
  testNotifications: projectCall({
    does: "Send a test message to each target of notifications",
    ...{ method: "POST", path: "/projects/:project/notify/test", right: "server", takes: ofProject },
    gives: shapes.notified,
    async handle({ project, notify }) {
      const { sendTestMessages } = await import("#notifications/targets");
      return { project, results: await sendTestMessages(notify, project, new AbortController().signal) };
    },
  }),
};

/** All projects by name, also those whose settings were never good; one that was removed only as long as it is deployed. */
export function listProjects(sources: ServerContext): readonly ProjectJson[] {
  const served = sources.projects
    .list()
    .map((one) => projectJson(contextOf(sources, one)))
    .filter(({ isServed, fault, last }) => isServed || fault !== null || last?.state === "running");
  const names = new Set(served.map(({ name }) => name));
  const broken = [...sources.projects.faults()].filter(([name]) => !names.has(name));
  const without = {
    repoPath: null,
    webUrl: null,
    branches: [],
    live: null,
    last: null,
    waiting: 0,
    paused: null,
    isServed: false,
  };
  const all = [...served, ...broken.map(([name, fault]) => ({ ...without, name, fault }))];
  return all.sort((one, other) => (one.name < other.name ? -1 : 1));
}

function projectJson({ project, store, repoPath, refs, fault, isServed }: ProjectContext): ProjectJson {
  const good = findLastGood(store);
  const last =
    findRunning(store) ??
    listDeployments(store, { limit: 100 }).find(({ state }) => state !== "superseded" && state !== "skipped");
  const waiting = store.get(
    "SELECT count(*) AS n FROM deployments WHERE project = $project AND state = 'queued'",
  );
  return {
    ...{ name: project, repoPath, webUrl: webAddress(repoPath), fault, isServed },
    branches: branchesOf(refs),
    live: good && {
      ...{ commit: liveCommit(good), subject: good.subject, author: good.author },
      since: instantOrNull(good.finishedAtMs),
    },
    last: last ? deploymentJson(last) : null,
    waiting: Number(waiting?.n),
    paused: pauseJson(findPause(store)),
  };
}

export function branchesOf(refs: readonly string[]): readonly string[] {
  return refs.map((ref) => ref.replace("refs/heads/", ""));
}
