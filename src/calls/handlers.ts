import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import * as visitors from "#access/visitors";
import { stateDirectoryOf } from "#config/server";
import { type Deployment, isFinished, liveCommit } from "#deployments/deployment";
import {
  countRequests,
  findLastGood,
  findLastRef,
  findLatest,
  listDeployments,
  listRunning,
  listWaiting,
  type RequestCounts,
} from "#deployments/history";
import { isCommitId } from "#deployments/push";
import { findReceipt, receiptKey } from "#deployments/receipt";
import {
  findDeployment,
  findPause,
  findRunning,
  listSteps,
  pauseQueue,
  resumeQueue,
} from "#deployments/store";
import { sendTestMessages } from "#notifications/targets";
import type { Store } from "#platform/sqlite";
import type { Project } from "#projects/project";
import { logBytes, logPath, readLog } from "#runner/log-file";
import type { Caller, ServiceContext, Stream } from "./context.ts";
import { metricsText } from "./metrics.ts";
import type * as shapes from "./shapes.ts";
import { deploymentJson, instant, pauseJson, stepJson, withInstants } from "./shapes.ts";
import { branchesOf, currentJson, listProjects, projectStatus, wholeStatus } from "./status.ts";
import { eventsIn } from "./streams.ts";
import { type CallName, type calls, type GivenBy, refuse, type TakenBy } from "./table.ts";

interface Whose {
  readonly id?: number | "latest" | undefined;
  readonly project?: string | undefined;
  readonly within?: string | undefined;
}

type Reply<Name extends CallName> = (typeof calls)[Name]["gives"] extends string ? Stream : GivenBy<Name>;
type Handlers = {
  readonly [Name in CallName]: (
    run: ServiceContext,
    asked: TakenBy<Name>,
    caller: Caller,
  ) => Reply<Name> | Promise<Reply<Name>>;
};

const usualLimit = 20;
const usualEntries = 50;

/** What `run` does for each call of table.ts. Its right was checked, and what it takes was read by the row. */
export const handlers: Handlers = {
  projects: (run) => ({ projects: listProjects(run) }),

  async status(run, asked) {
    const found = await findProject(run, asked);
    return found === null ? wholeStatus(run) : projectStatus(run, found);
  },

  async history(run, { limit = usualLimit, before, state, ...whose }) {
    const { store } = (await findProject(run, whose)) ?? run;
    const listed = listDeployments(store, { limit: limit + 1, before, ...(state && { state }) });
    const deployments = listed.slice(0, limit).map((one) => currentJson(run, one));
    return { deployments, next: listed.length > limit ? (deployments.at(-1)?.id ?? null) : null };
  },

  deployment: withDeployment((found, { store, statePath }, _asked, run) => ({
    deployment: currentJson(run, found),
    steps: listSteps(store, found).map(stepJson),
    logBytes: logBytes(logPath(statePath, found.id)),
  })),

  log: withDeployment(({ id }, { statePath }, { format }) => logIn(logPath(statePath, id), format)),

  events: withDeployment((found, { store, statePath }, { from, follow }, run) => {
    const { events, log } = run;
    const toJson = (deployment: Deployment) => currentJson(run, deployment);
    const wanted = { from, isFollowing: follow === "true" };
    return eventsIn({ store, statePath, events, log, toJson }, found.id, wanted);
  }),

  /** Without it a deployment is as good as with it: what keeps it from being signed is a refusal, and no fault. */
  receipt: withDeployment(async ({ id, state }, { store }, _asked, { service, log }) => {
    const found = await findReceipt(store, service.statePath, id).catch((error: unknown) => {
      log.error({ event: "receipt.unsigned", deployment: id, err: error }, "A receipt could not be signed");
      return refuse("not_possible", `The receipt cannot be signed: ${(error as Error).message}`);
    });
    const why = `Deployment ${id} is ${state.replace("_", " ")}. Only one that has succeeded leaves a receipt.`;
    return found ?? refuse("not_possible", why);
  }),

  receiptKey: async ({ service }) => ({ publicKey: await receiptKey(service.statePath) }),

  /** A person requests it, so it runs even if the same commit is deployed already. Like a push it supersedes what waits. */
  deploy: withProject(async (project, { ref }, { name: requestedBy }, { log }) => {
    mustBeServed(project);
    const head = await findHead(project, candidateRefs(project, ref));
    const deployment = project.queue.request({ trigger: "manual", ...head, requestedBy });
    const text = `Deployment ${deployment.id} was requested`;
    log.info({ event: "control.deploy", deployment: deployment.id, ...head, requestedBy }, text);
    return requestedJson(project.store, deployment);
  }),

  /**
   * Goes to the good version of a deployment or a commit, else to the one before what is live. While a new version is guarded,
   * that one still runs: then the deployment goes back itself.
   */
  rollback: withProject(async (project, { version: wanted }, { name: requestedBy }, { log }) => {
    mustBeServed(project);
    const { store, queue, refs } = project;
    const commit = wantedCommit(store, wanted);
    // A roll-out identifies its project by this path, whichever path was given for the repository.
    const directory = await project.hostDirectory(project.settings.repoPath);
    const { noGoodVersion, previousVersion, readVersions, rolloutState } = await import("#rollout/state");
    const rolloutStatePath = stateDirectoryOf(project.script().environment);
    const versions = await readVersions(rolloutState(rolloutStatePath, directory).versionsPath);
    const guarded = queue.findGuarded();
    // Until the version of a running deployment is recorded, the newest one is the one before it.
    const newest = versions.at(-1);
    const isMeant = newest?.commit.startsWith(commit ?? "") ?? false;
    if (guarded !== null && isMeant) {
      queue.goBack(guarded.id);
      const text = `Deployment ${guarded.id} was guarded, and goes back to the version before`;
      log.info({ event: "control.rollback", deployment: guarded.id, requestedBy }, text);
      return requestedJson(store, guarded);
    }
    const running = findRunning(store);
    const liveAtMs = (running?.trigger !== "rollback" && running?.liveAtMs) || 0;
    const isUnrecorded = newest !== undefined && Date.parse(newest.finishedAt) < liveAtMs;
    const version = isMeant && isUnrecorded ? newest : previousVersion(versions, commit);
    if (!version) return refuse("not_possible", noGoodVersion(versions, commit));
    // BRANCH may name a branch that was never deployed.
    const ref = findLastGood(store, refs)?.ref ?? String(refs[0]);
    const deployment = queue.request({ trigger: "rollback", ref, commit: version.commit, requestedBy });
    const text = `Deployment ${deployment.id} goes back to ${version.commit}`;
    log.info({ event: "control.rollback", deployment: deployment.id, requestedBy }, text);
    return requestedJson(store, deployment);
  }),

  /** A queued one is cancelled at once; a running one by terminating its script, which takes a moment. */
  cancel: withProject(({ store, queue }, { id: wanted }, { name: requestedBy }, { log }) => {
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

  pause: withProject(({ name: project, store }, asked, { name: pausedBy }, { log }) => {
    const reason = asked.reason || null;
    store.transaction(() => pauseQueue(store, { reason, pausedBy }));
    log.info(
      { event: "control.pause", project, requestedBy: pausedBy, reason },
      `The queue of ${project} is paused`,
    );
    return { project, paused: pauseJson(findPause(store)) };
  }),

  resume: withProject(({ name: project, store, queue }, _asked, { name: requestedBy }, { log }) => {
    if (!store.transaction(() => resumeQueue(store)))
      return refuse("not_possible", `The queue of ${project} is not paused.`);
    log.info({ event: "control.resume", project, requestedBy }, `The queue of ${project} goes on`);
    queue.wake();
    return { project, paused: null };
  }),

  services: withProject(async (project) => {
    const { findServices } = await import("./service-log.ts");
    return { services: await findServices(project) };
  }),

  serviceLog: withProject(async (project, asked, _caller, { log }) => {
    // As all code for Docker it is loaded when somebody asks.
    const { openServiceLog } = await import("./service-log.ts");
    return await openServiceLog(project, asked, log);
  }),

  metrics: (run) => ({
    write(response) {
      response.end(metricsText(run));
    },
  }),

  visitor: (_server, _asked, { visitor }) =>
    visitor ?? refuse("not_possible", "Over this socket nobody is a visitor: everything is allowed."),

  signOut({ store }, _asked, { visitor }) {
    if (visitor?.kind !== "session")
      return refuse("not_possible", "A token is revoked on the server: hotpush open --end <id>");
    return visitors.revokeVisitor(store, visitor.id) ?? visitor;
  },

  /** An answer to a link that is refused does not say why: it could be a guess. */
  signIn({ store }, { link }, browser) {
    const session = visitors.openLink(store, link, browser, Date.now());
    const why = "This link was used, or is older than two minutes. For a new one: hotpush open";
    return { session: session ?? refuse("not_signed_in", why) };
  },

  offerPushes({ inbox }, { ids }) {
    return {
      pushes: inbox.record(ids) ?? refuse("not_possible", "No pushes can be recorded now. Try again."),
    };
  },

  dryRun: ({ inbox }, offer) => inbox.dryRun(offer),

  badge({ service, projects }, { project: name }) {
    const project = service.isBadgePublic ? projects.find(name) : null;
    return project?.isServed ? badgeCounts(project) : refuse("not_found", "There is no such badge.");
  },

  noteUses: ({ inbox }, { uses }) =>
    inbox.noteUses(uses) ? {} : refuse("not_possible", "Uses are noted twice a second at most."),

  testNotifications: withProject(async ({ name: project, settings }) => ({
    project,
    results: await sendTestMessages(settings.notify, project, new AbortController().signal),
  })),

  health({ findFault }) {
    const detail = findFault();
    return detail === null ? { status: "ok" } : refuse("unhealthy", detail);
  },

  /** A command that is killed leaves nothing behind. A running script goes on. */
  hold: ({ turns, store, log }, { reason }, { name: heldBy }) => ({
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

  makeLink({ store, service: { pageUrl } }, asked) {
    const { secret: link } = visitors.makeCredential(store, "link", asked, Date.now());
    const url = pageUrl && new URL(`/sign-in?link=${link}`, pageUrl).href;
    return { link, url, ...asked, lastsMs: visitors.linkLastsMs };
  },

  makeToken: ({ store }, asked) => ({
    ...visitors.makeCredential(store, "token", asked, Date.now()),
    ...asked,
  }),

  visitors: ({ store }) => ({
    visitors: visitors.listVisitors(store, Date.now()).map((visitor) => withInstants(visitor)),
  }),

  endVisitor: ({ store }, { id }) =>
    visitors.revokeVisitor(store, id) ??
    refuse("not_found", `There is no session or token ${id}. See: hotpush open --list`),

  audit: ({ store }, { limit = usualEntries }) => ({
    entries: visitors.listActions(store, limit).map(({ atMs, ...same }) => ({ at: instant(atMs), ...same })),
  }),
};

const badgeDays = 90;
/** Anybody may ask for a badge, and as often as they like. */
const badgeAgeMs = 60_000;
const badges = new WeakMap<Project, { readonly counts: RequestCounts; readonly readAtMs: number }>();

function badgeCounts(project: Project): RequestCounts {
  const nowMs = Date.now();
  const known = badges.get(project);
  if (known && Math.abs(nowMs - known.readAtMs) < badgeAgeMs) return known.counts;
  const counts = countRequests(project.store, nowMs - badgeDays * 24 * 3_600_000);
  badges.set(project, { counts, readAtMs: nowMs });
  return counts;
}

/** Finds the project that a call is about, for a handler. */
function withProject<Asked extends Whose, Given>(
  handle: (project: Project, asked: Asked, caller: Caller, run: ServiceContext) => Given | Promise<Given>,
) {
  return async (run: ServiceContext, asked: Asked, caller: Caller): Promise<Given> => {
    const advice = "Which project? Run this in its checkout, or add --project <name>.";
    const found = await findProject(run, asked);
    return await handle(
      found ?? refuse("input_invalid", `${advice} ${knownProjects(run)}`),
      asked,
      caller,
      run,
    );
  };
}

/**
 * Finds the project that a call is about: that of the deployment in its path, the one that it names, the one whose checkout
 * the command was called in, or the only one. If there is none, the files of the projects are read again first: it may have
 * been added just now.
 *
 * @returns null if it is about none of them alone
 * @throws ProblemError if there is none
 */
async function findProject(run: ServiceContext, whose: Whose): Promise<Project | null> {
  return await lookUp(run, whose).catch(() => {
    run.projects.refresh();
    return lookUp(run, whose);
  });
}

async function lookUp(run: ServiceContext, whose: Whose): Promise<Project | null> {
  const { id = "latest", within } = whose;
  const named = whose.project === "_" ? undefined : whose.project;
  const deployment = id === "latest" ? null : findDeployment(run.store, id);
  if (deployment !== null && named !== undefined && named !== deployment.project)
    refuse("not_found", `Deployment ${id} is one of the project ${deployment.project}, not of ${named}.`);
  const name = deployment?.project ?? named ?? (await usualProject(run, within));
  if (name === null) return id === "latest" ? null : noDeployment(id);
  const found = run.projects.find(name);
  if (found !== null) return found;
  const fault = run.projects.faults().get(name);
  const absent = fault ? `Project ${name} has faulty settings: ${fault}` : `There is no project ${name}.`;
  return refuse("not_found", `${absent} ${knownProjects(run)}`);
}

function noDeployment(id: number | "latest"): never {
  refuse(
    "not_found",
    id === "latest"
      ? "Nothing was deployed yet. Push to main, or run: hotpush deploy"
      : `There is no deployment ${id}; it may have been pruned. See: hotpush history`,
  );
}

function knownProjects(run: ServiceContext): string {
  const names = projectNames(run);
  return names.length === 0 ? "There are no projects yet." : `The projects are: ${names.join(", ")}.`;
}

/** All but those that were removed while the service runs. */
function projectNames({ projects }: ServiceContext): readonly string[] {
  const served = projects.list().filter(({ isServed }) => isServed);
  return [...new Set([...served.map(({ name }) => name), ...projects.faults().keys()])].sort();
}

/**
 * The only project, else the one whose checkout is one of the directories in `within`, the innermost first. They are compared
 * by device and inode: a path may lead elsewhere in a container, and through links.
 */
async function usualProject(run: ServiceContext, within: string | undefined): Promise<string | null> {
  const [first = null, ...others] = projectNames(run);
  if (others.length === 0 || within === undefined) return others.length === 0 ? first : null;
  const served = run.projects.list().filter(({ isServed }) => isServed);
  const checkouts = served.map(async ({ name, settings }) => {
    const stats = await stat(settings.repoPath, { bigint: true }).catch(() => null);
    return [stats && `${stats.dev}.${stats.ino}`, name] as const;
  });
  const names = new Map(await Promise.all(checkouts));
  const found = within.split("-").find((directory) => names.has(directory));
  return (found && names.get(found)) ?? null;
}

/** What a deployment has printed so far, as it was printed. `timed`: as the file at `path` has it, byte by byte. */
function logIn(path: string, format: "text" | "timed"): Stream {
  const end = logBytes(path) - 1;
  const stored = () => (end < 0 ? [] : createReadStream(path, { end }));
  return {
    async write(response) {
      // A reader that goes away ends it.
      await pipeline(format === "text" ? textIn(path) : stored(), response).catch(() => response.destroy());
    },
  };
}

function* textIn(path: string): Generator<string, void, void> {
  for (const lines of readLog(path, 0)) yield lines.map(({ text }) => `${text}\n`).join("");
}

/** Finds the deployment that a call is about. `latest`: the one that runs, else the last that did. */
function withDeployment<Asked extends Whose & { readonly id: number | "latest" }, Given>(
  handle: (found: Deployment, project: Project, asked: Asked, run: ServiceContext) => Given | Promise<Given>,
) {
  return withProject((project, asked: Asked, _caller, run) => {
    const { store } = project;
    const found = asked.id === "latest" ? findLatest(store) : findDeployment(store, asked.id);
    if (found === null) return noDeployment(asked.id);
    return handle(found, project, asked, run);
  });
}

function requestedJson(store: Store, requested: Deployment): shapes.RequestedJson {
  const deployment = deploymentJson(findDeployment(store, requested.id) ?? requested);
  return { deployment, paused: pauseJson(findPause(store)) };
}

/** A deployment would wait for settings that may never come. */
function mustBeServed({ name, isServed }: Project): void {
  if (!isServed)
    refuse("not_possible", `The file of project ${name} was removed, so nothing of it is deployed.`);
}

/** The requested branch, else the one deployed last, else every branch that is deployed. */
function candidateRefs({ store, refs }: Project, wanted: string | undefined): readonly string[] {
  if (wanted === undefined) {
    const last = findLastRef(store, refs);
    return last === null ? refs : [last];
  }
  const ref = `refs/heads/${wanted.replace(/^refs\/heads\//, "")}`;
  if (refs.some((one) => one === ref)) return [ref];
  const names = branchesOf(refs).join(" or ");
  const advice = "To go back to an earlier commit: hotpush rollback <commit>";
  return refuse("input_invalid", `Only ${names} can be deployed. ${advice}`);
}

/** The first of `refs` that the remote has. */
async function findHead(
  project: Project,
  refs: readonly string[],
): Promise<{ readonly ref: string; readonly commit: string }> {
  const reasons = new Set<string>();
  for (const ref of refs) {
    const head = await project.readRemoteHead(ref);
    if (head.kind === "head" && isCommitId(head.commit)) return { ref, commit: head.commit };
    reasons.add(head.kind === "head" ? `the remote gave no commit for ${ref}.` : head.detail);
  }
  return refuse("not_possible", `Nothing to deploy: ${[...reasons].join(" ")}`);
}

/** A short number is that of a deployment if there is one with it; everything else is the beginning of a commit. */
function wantedCommit(store: Store, version: string | undefined): string | undefined {
  const numbered = /^\d{1,9}$/.test(version ?? "") ? findDeployment(store, Number(version)) : null;
  // Mistyped or pruned, it must not stand for whatever commit begins with it.
  if (numbered === null && /^\d{1,6}$/.test(version ?? "")) return noDeployment(Number(version));
  if (numbered === null) return version?.toLowerCase();
  if (numbered.project !== store.project)
    refuse("not_possible", `Deployment ${numbered.id} is one of the project ${numbered.project}.`);
  return liveCommit(numbered);
}
