import { listActions } from "#access/audit";
import * as visitors from "#access/visitors";
import { type Deployment, isFinished } from "#deployments/deployment";
import {
  findLastRef,
  findLatest,
  findRunning,
  listDeployments,
  listRunning,
  listWaiting,
} from "#deployments/history";
import { isCommitId } from "#deployments/push";
import { findDeployment, findPause, listSteps, pauseQueue, resumeQueue } from "#deployments/store";
import { sendTestMessages } from "#notifications/targets";
import type { Store } from "#platform/sqlite";
import type { Project } from "#projects/project";
import { logBytes, logPath, readLogPage } from "#runner/log-file";
import {
  type Caller,
  findProject,
  isRefused,
  knownProjects,
  noDeployment,
  type Refused,
  refuse,
  type ServerContext,
  type Stream,
  type Whose,
} from "./context.ts";
import { metricsText } from "./metrics.ts";
import { rollBack } from "./roll-back.ts";
import type * as shapes from "./shapes.ts";
import { deploymentJson, instant, instantOrNull, lineJson, pauseJson, stepJson } from "./shapes.ts";
import { branchesOf, listProjects, projectStatus, wholeStatus } from "./status.ts";
import { eventsIn, logIn } from "./streams.ts";
import type { CallName, calls, GivenBy, TakenBy } from "./table.ts";

type Reply<Name extends CallName> =
  | ((typeof calls)[Name]["gives"] extends string ? Stream : GivenBy<Name>)
  | Refused;
type Handlers = {
  readonly [Name in CallName]: (
    server: ServerContext,
    asked: TakenBy<Name>,
    caller: Caller,
  ) => Reply<Name> | Promise<Reply<Name>>;
};

const usualLimit = 20;
const usualEntries = 50;

/** What `run` does for each call of table.ts. Its right was checked, and what it takes was read by the row. */
export const handlers: Handlers = {
  projects: (server) => ({ projects: listProjects(server) }),

  doctor: inProject(
    ({ name }, _asked, _caller, { examiner }) =>
      examiner?.look(name) ??
      refuse(
        "not_possible",
        "Run hotpush doctor on the server: it needs the secret, which this service shows nobody.",
      ),
  ),

  async status(server, asked) {
    const found = await findProject(server, asked);
    if (found === null) return wholeStatus(server);
    return isRefused(found) ? found : projectStatus(server, found);
  },

  async history(server, { limit = usualLimit, before, state, ...whose }) {
    const found = await findProject(server, whose);
    if (found !== null && isRefused(found)) return found;
    const wanted = { limit: limit + 1, before, ...(state && { state }) };
    const listed = listDeployments((found ?? server).store, wanted);
    const deployments = listed.slice(0, limit).map(deploymentJson);
    return { deployments, next: listed.length > limit ? (deployments.at(-1)?.id ?? null) : null };
  },

  deployment: inProject(({ store, statePath }, { id }) => {
    const found = wantedDeployment(store, id);
    if (found === null) return noDeployment(id);
    const steps = listSteps(store, found).map(stepJson);
    return { deployment: deploymentJson(found), steps, logBytes: logBytes(logPath(statePath, found.id)) };
  }),

  log: inProject(({ store, statePath }, { id, format }) => {
    const found = wantedDeployment(store, id);
    return found === null ? noDeployment(id) : logIn(logPath(statePath, found.id), format);
  }),

  logPage: inProject(({ store, statePath }, { id, to }) => {
    const found = wantedDeployment(store, id);
    if (found === null) return noDeployment(id);
    const page = readLogPage(logPath(statePath, found.id), to);
    return { ...page, lines: page.lines.map(lineJson) };
  }),

  events: inProject(({ store, statePath }, { id, from, follow }, _caller, { events, log }) => {
    const found = wantedDeployment(store, id);
    if (found === null) return noDeployment(id);
    return eventsIn({ store, statePath, events, log }, found, {
      fromByte: from,
      isFollowing: follow === "true",
    });
  }),

  /** A person requests it, so it runs even if the same commit is deployed already. Like a push it supersedes what waits. */
  deploy: inProject(async (project, { ref }, { name: requestedBy }, { log }) => {
    if (!project.isServed) return noSettings(project);
    const refs = candidateRefs(project, ref);
    if (refs === null) return refuse("input_invalid", notDeployed(project));
    const head = await findHead(project, refs);
    if (typeof head === "string") return refuse("not_possible", `Nothing to deploy: ${head}`);
    const deployment = project.queue.request({ trigger: "manual", ...head, requestedBy });
    const text = `Deployment ${deployment.id} was requested`;
    log.info({ event: "control.deploy", deployment: deployment.id, ...head, requestedBy }, text);
    return requestedJson(project.store, deployment);
  }),

  rollback: inProject(async (project, { version }, { name }, { log }) => {
    if (!project.isServed) return noSettings(project);
    const found = await rollBack(project, version, name, log);
    return isRefused(found) ? found : requestedJson(project.store, found);
  }),

  /** A queued one is cancelled at once; a running one by terminating its script, which takes a moment. */
  cancel: inProject(({ store, queue }, { id: wanted }, { name: requestedBy }, { log }) => {
    const latest = () => findRunning(store) ?? listWaiting(store)[0];
    const deployment = wanted === "latest" ? latest() : findDeployment(store, wanted);
    if (!deployment && wanted !== "latest") return noDeployment(wanted);
    if (!deployment)
      return refuse("not_possible", "No deployment runs or waits, so there is nothing to cancel.");
    const { id, state } = deployment;
    const ending = state.replace("_", " ");
    if (isFinished(state))
      return refuse("not_possible", `Deployment ${id} is ${ending} already, so there is nothing to cancel.`);
    if (!queue.cancel(id, requestedBy))
      return refuse(
        "not_possible",
        `Deployment ${id} cannot be cancelled right now (${state}). Try again in a second.`,
      );
    log.info({ event: "control.cancel", deployment: id, requestedBy }, `Deployment ${id} is cancelled`);
    return requestedJson(store, deployment);
  }),

  pause: inProject(({ name: project, store }, asked, { name: pausedBy }, { log }) => {
    const reason = asked.reason || null;
    store.transaction(() => pauseQueue(store, { reason, pausedBy }));
    log.info(
      { event: "control.pause", project, requestedBy: pausedBy, reason },
      `The queue of ${project} is paused`,
    );
    return { project, paused: pauseJson(findPause(store)) };
  }),

  resume: inProject(({ name: project, store, queue }, _asked, { name: requestedBy }, { log }) => {
    if (!store.transaction(() => resumeQueue(store)))
      return refuse("not_possible", `The queue of ${project} is not paused.`);
    log.info({ event: "control.resume", project, requestedBy }, `The queue of ${project} goes on`);
    queue.wake();
    return { project, paused: null };
  }),

  metrics(server) {
    const text = metricsText(server);
    return {
      kind: "stream",
      write(response) {
        response.end(text);
      },
    };
  },

  visitor: (_server, _asked, { visitor }) =>
    visitor ?? refuse("not_possible", "Over this socket nobody is a visitor: everything is allowed."),

  sessions: (server, _asked, { visitor }) => ({
    sessions: sessionsOf(server, visitor).map(({ createdAtMs, lastSeenAtMs, ...same }) => ({
      ...{ ...same, createdAt: instant(createdAtMs), lastSeenAt: instant(lastSeenAtMs) },
    })),
  }),

  signOut(server, asked, { visitor }) {
    if (visitor?.kind !== "session")
      return refuse("not_possible", "A token is revoked on the server: hotpush open --end-token <id>");
    const id = asked.id ?? visitor.id;
    const isOwn = sessionsOf(server, visitor).some((session) => session.id === id);
    if (isOwn && visitors.revokeSession(server.access(), id)) return { id };
    return refuse("not_found", "This session has ended already.");
  },

  /** An answer to a link that is refused does not say why: it could be a guess. */
  signIn({ access }, { link }, browser) {
    const session = visitors.openLink(access(), link, browser, Date.now());
    if (session !== null) return { session };
    return refuse(
      "not_signed_in",
      "This link was used, or is older than two minutes. For a new one: hotpush open",
    );
  },

  offerPushes({ taking }, { ids }) {
    const pushes = taking.record(ids);
    return pushes === null ? refuse("not_possible", "No pushes can be recorded now. Try again.") : { pushes };
  },

  dryRun: ({ taking }, offer) => taking.dryRun(offer),

  noteUses: ({ taking }, { uses }) =>
    taking.noteUses(uses) ? {} : refuse("not_possible", "Uses are noted twice a second at most."),

  testNotifications: inProject(async ({ name: project, settings }) => ({
    ...{ project, results: await sendTestMessages(settings.notify, project, new AbortController().signal) },
  })),

  health({ findFault }) {
    const detail = findFault();
    return detail === null ? { status: "ok" } : refuse("unhealthy", detail);
  },

  /** A command that is killed leaves nothing behind. A running script goes on. */
  hold: ({ turns, store, log }, { reason }, { name: heldBy }) => ({
    kind: "stream",
    write(response) {
      const send = (event: shapes.HoldEvent) => response.write(`${JSON.stringify(event)}\n`);
      let isQuiet = false;
      const release = turns.holdAll({ sinceMs: Date.now(), reason, heldBy }, () => {
        isQuiet = true;
        send({ event: "quiet" });
      });
      log.info({ event: "control.hold", requestedBy: heldBy, reason }, `No deployment starts: ${reason}`);
      if (!isQuiet) send({ event: "waiting", running: listRunning(store).map(deploymentJson) });
      response.once("close", () => {
        release();
        log.info({ event: "control.released" }, "Deployments may start again");
      });
    },
  }),

  makeLink({ access, pageUrl }, asked) {
    const link = visitors.makeLink(access(), asked, Date.now());
    const url = pageUrl && new URL(`/sign-in?link=${link}`, pageUrl).href;
    return { link, url, ...asked, lastsMs: visitors.linkLastsMs };
  },

  endSession({ access }, { id }) {
    if (visitors.revokeSession(access(), id)) return { id };
    return refuse("not_found", `There is no session ${id}. See: hotpush open --list`);
  },

  makeToken: ({ access }, asked) => ({ ...visitors.createToken(access(), asked, Date.now()), ...asked }),

  tokens: ({ access }) => ({
    tokens: visitors.listTokens(access()).map(({ createdAtMs, lastUsedAtMs, ...same }) => ({
      ...{ ...same, createdAt: instant(createdAtMs), lastUsedAt: instantOrNull(lastUsedAtMs) },
    })),
  }),

  endToken({ access }, { id }) {
    if (visitors.revokeToken(access(), id)) return { id };
    return refuse("not_found", `There is no token ${id}. See: hotpush open --list`);
  },

  audit: ({ access }, { limit = usualEntries }) => ({
    entries: listActions(access(), limit).map(({ atMs, ...same }) => ({ at: instant(atMs), ...same })),
  }),
};

/** Finds the project that a call is about, for a handler. */
function inProject<Asked extends Whose, Given>(
  handle: (
    project: Project,
    asked: Asked,
    caller: Caller,
    server: ServerContext,
  ) => Given | Refused | Promise<Given | Refused>,
) {
  return async (server: ServerContext, asked: Asked, caller: Caller): Promise<Given | Refused> => {
    const found = await findProject(server, asked);
    if (found !== null) return isRefused(found) ? found : await handle(found, asked, caller, server);
    const advice = "Which project? Run this in its checkout, or add --project <name>.";
    return refuse("input_invalid", `${advice} ${knownProjects(server)}`);
  };
}

/** The deployment with `id`, or the one that runs, else the last that did. */
function wantedDeployment(store: Store, id: number | "latest"): Deployment | null {
  return id === "latest" ? findLatest(store) : findDeployment(store, id);
}

/** Its deployment would wait for settings that may never come. */
function noSettings({ name }: Project): Refused {
  return refuse("not_possible", `The file of project ${name} was removed, so nothing of it is deployed.`);
}

function requestedJson(store: Store, requested: Deployment): shapes.RequestedJson {
  const deployment = deploymentJson(findDeployment(store, requested.id) ?? requested);
  return { deployment, paused: pauseJson(findPause(store)) };
}

/** The requested branch, else the one deployed last, else every branch that is deployed; null if it is none of them. */
function candidateRefs({ store, refs }: Project, wanted: string | undefined): readonly string[] | null {
  if (wanted === undefined) {
    const last = findLastRef(store, refs);
    return last === null ? refs : [last];
  }
  const ref = `refs/heads/${wanted.replace(/^refs\/heads\//, "")}`;
  return refs.some((one) => one === ref) ? [ref] : null;
}

function notDeployed({ refs }: Project): string {
  const names = branchesOf(refs);
  const only =
    names.length > 1
      ? `Only the branches ${names.join(" and ")} are deployed.`
      : `Only the branch ${names[0]} is deployed, because BRANCH names it.`;
  return `${only} To go back to an earlier commit: hotpush rollback <commit>`;
}

/** The first of `refs` that the remote has, or the reasons why there is none. */
async function findHead(
  { readRemoteHead }: Project,
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

/** Those of the same person in the same role, which are the ones that they may end; without a visitor, all. */
function sessionsOf(
  { access }: ServerContext,
  visitor: visitors.Visitor | null,
): readonly visitors.Session[] {
  const sessions = visitors.listSessions(access(), Date.now());
  if (visitor === null) return sessions;
  if (visitor.kind !== "session") return [];
  return sessions.filter(({ name, role }) => name === visitor.name && role === visitor.role);
}
