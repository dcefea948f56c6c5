import { pause } from "#platform/async";
import {
  type Checkout,
  type Commit,
  countNewCommits,
  fetchBranch,
  isAncestor,
  isRepository,
  type RemoteHead,
  readCommit,
  readRemoteHead,
  runGit,
  withoutReplacements,
} from "#platform/git";
import type { Store } from "#platform/sqlite";
import { printable } from "#platform/terminal";
import type { Problem } from "#problems";
import type { Checks } from "./checks.ts";
import { type Deployment, liveCommit, type NotDeployed, stateTexts } from "./deployment.ts";
import { findLastGood } from "./history.ts";
import { branchOf, shortCommit } from "./push.ts";
import { hasDeployment, isAfter } from "./store.ts";

/** What becomes of a deployment, by where its branch is at the remote. */
export type Decision =
  | { readonly kind: "deploy"; readonly commit: string; readonly isSigned: boolean }
  | NotDeployed;

export interface Resolver {
  /**
   * Asks the remote where the branch of a claimed deployment is, and decides by the rules. Records what it decided about.
   *
   * @param signal its abort ends all questions: then the deployment waits
   * @throws errors of the system, such as a lack of descriptors
   */
  readonly resolve: (deployment: Deployment, signal: AbortSignal) => Promise<Decision>;
  /** What the rules say about a head for which no push has come: `deploy` means that it was missed. Asks git nothing. */
  readonly judgeHead: (ref: string, head: string) => Promise<Decision["kind"]>;
}

/** A setting is asked for when it is needed: it may have changed. */
export interface ResolverOptions {
  readonly store: Store;
  readonly checkout: () => Checkout;
  /** DEPLOY_PATHS; none: every push is deployed. */
  readonly paths: () => readonly string[];
  /** Gives what finds why a commit must not be deployed, or null: commits need no signature. */
  readonly checkSigned: () =>
    | ((deployment: Deployment, commit: string, signal: AbortSignal) => Promise<Problem | null>)
    | null;
  readonly checks: Checks;
  /** An older head counts if the remote reports it twice, so far apart. */
  readonly confirmMs: () => number;
  /** How long a push waits for a remote that does not answer. The default is an hour. */
  readonly patienceMs?: number;
  /** How long one look at the remote may keep the turn, which other projects wait for. The default is 10 s. */
  readonly maxLookMs?: number;
  /** A clock that never jumps, in milliseconds. */
  readonly clock?: () => number;
}

/** Where a branch is. What takes git is looked up only if a rule asks. */
interface Look extends Readonly<ReturnType<typeof lookUp>> {
  /** The commit of the push. */
  readonly pushed: string;
  readonly trigger: Deployment["trigger"];
  /** Whether a person asked: `hotpush deploy`, or Redeliver of a failed one. */
  readonly isAsked: boolean;
  readonly containsPushed: boolean;
  /** Whether what was deployed last of this branch already contains the head. */
  readonly isBehindLast: () => Promise<boolean>;
  /** Whether the remote has reported this head before, long enough ago. The first call notes that it is reported. */
  readonly isReportedAgain: () => boolean;
  /** Why the head says that it need not be deployed, or null. */
  readonly findSkip: () => Promise<string | null>;
  /** What speaks against the head at the git host, or null. */
  readonly judgeChecks: () => Promise<Decision | null>;
}

/** @returns null to leave it to the next rule */
type Rule = (look: Look) => Decision | null | Promise<Decision | null>;

/**
 * The rules on what to deploy, in the order in which they are asked, and with the numbers of docs/how-it-works.md: the first that
 * has an answer decides. A push only says that its branch moved, so all of them are about the head of the branch. Rule 1, for a
 * remote that is silent, comes before them: without a head there is nothing to ask.
 */
const rules: readonly Rule[] = [
  // 2. What a person asks for always runs.
  (look) => (look.isAsked ? deploy(look) : null),

  // 3. Catch-up deploys nothing before a first deployment.
  ({ trigger, live }) => (trigger === "catch-up" && live === null ? skip("Nothing was deployed yet.") : null),

  // 4. A head that may be an old one counts if it is reported twice. So a host that lags rolls nothing back.
  async (look) => {
    if (!(await mayBeOld(look)) || look.isReportedAgain()) return null;
    const { ref, head, pushed } = look;
    const what = look.containsPushed
      ? "an older commit than what was deployed or tried last"
      : `which does not contain ${shortCommit(pushed)}`;
    return {
      kind: "wait",
      reason: `The remote has ${branchOf(ref)} at ${shortCommit(head)}, ${what}. It is asked again, because a git host may lag behind its own push.`,
    };
  },

  // 5. A head that is live is not deployed again, unless a later script failed: it may have changed what is live.
  (look) => {
    const { live, last, head, pushed, ref, containsPushed } = look;
    if (last === null || !isHeadDeployed(look) || look.isUnsure) return null;
    const is =
      live?.id === last.id ? `is live since deployment ${last.id}` : `was deployed by deployment ${last.id}`;
    const gone = containsPushed ? "" : ` ${shortCommit(pushed)} is not in ${branchOf(ref)} any more.`;
    return skip(`${shortCommit(head)}, the head of ${branchOf(ref)}, ${is}.${gone}`);
  },

  // 6. After a roll back, a head that was seen before waits for a person.
  (look) => {
    const { last, head, ref, wasSeenBeforeLast } = look;
    if (last?.trigger !== "rollback" || !wasSeenBeforeLast || isHeadDeployed(look)) return null;
    return skip(
      `Deployment ${last.id} has rolled back from ${shortCommit(head)}, and ${branchOf(ref)} has nothing newer. To deploy it all the same: hotpush deploy ${branchOf(ref)}`,
    );
  },

  // 7. A commit that failed is not retried by itself, unless another one of its branch was deployed since.
  ({ failed, head, ref }) =>
    failed &&
    skip(
      `${shortCommit(head)}, the head of ${branchOf(ref)}, was deployed by deployment ${failed.id}, which ${stateTexts[failed.state]}. To try again: hotpush deploy ${branchOf(ref)}`,
    ),

  // 8. [skip deploy] and DEPLOY_PATHS.
  async (look) => {
    const reason = isHeadDeployed(look) ? null : await look.findSkip();
    return reason === null ? null : skip(reason);
  },

  // 9. With DEPLOY_AFTER, a head waits for its checks.
  ({ judgeChecks }) => judgeChecks(),

  // Else the head is deployed.
  deploy,
];

/** Whether a host that lags behind its own push could report this head. */
async function mayBeOld(look: Look): Promise<boolean> {
  if (isHeadDeployed(look)) return look.isUnsure || !look.containsPushed;
  const isUnproven = look.trigger === "catch-up" || !look.containsPushed;
  return (look.wasSeen && isUnproven) || (await look.isBehindLast());
}

/** What the record knows of a head. @param id of the deployment that is decided about; null: of none */
function lookUp(store: Store, ref: string, head: string, id: number | null) {
  const last = findLastGood(store, [ref]);
  const changesIt = "AND ref = ? AND trigger NOT IN ('rollback', 'image')";
  return {
    ref,
    head,
    /** The deployment that made live what is live, of any branch. */
    live: findLastGood(store),
    /** The last one of this branch that succeeded. */
    last,
    /** Whether a script of the branch was started after the last one, and did not succeed: it may have changed what is live. */
    isUnsure: last !== null && hasTriedSince(store, last, changesIt, ref),
    /** Whether the head was the subject of another push or deployment. */
    wasSeen: wasSeen(store, ref, head, "IS NOT", id),
    /** Whether it was already, before the last one of this branch. */
    wasSeenBeforeLast: last !== null && wasSeen(store, ref, head, "<", last.id),
    /** The deployment that failed with the head since another one of this branch succeeded, or null. */
    failed: findFailed(store, ref, head, last),
  };
}

function deploy({ head }: Pick<Look, "head">): Decision {
  return { kind: "deploy", commit: head, isSigned: false };
}

function skip(reason: string): Decision {
  return { kind: "skipped", reason };
}

function isHeadDeployed({ last, head }: Look): boolean {
  return last !== null && liveCommit(last) === head;
}

const ended: Decision = { kind: "wait", reason: "The service is stopping, or it was cancelled." };
const usualPatienceMs = 3_600_000;
/** How often the remote is asked whether its head contains the pushed commit, before the rules are asked. */
const usualPausesS = "1 2 3 3";
/** No further question follows then: others wait for their turn. */
const longestLookMs = 30_000;
export const defaultMaxLookMs = 10_000;
/** A late answer is believed for so long. */
const freshMs = 60_000;

/** Makes the resolver of a project: it decides what a deployment deploys. */
export function createResolver(options: ResolverOptions): Resolver {
  const { store, checks, paths, patienceMs = usualPatienceMs, clock = () => performance.now() } = options;
  const look = createLook(options.maxLookMs ?? defaultMaxLookMs, clock);
  /** When the remote was heard last, or asked first, about a deployment that waits. */
  const heardAtMs = new Map<number, number>();
  /** The older heads that the remote has reported, by branch. */
  const reported = new Map<string, { readonly head: string; readonly sinceMs: number }>();

  function isReportedAgain(ref: string, head: string): boolean {
    const before = reported.get(ref);
    if (before?.head === head) return clock() - before.sinceMs >= options.confirmMs();
    reported.set(ref, { head, sinceMs: clock() });
    return false;
  }

  async function decide(look: Omit<Look, "isReportedAgain">): Promise<Decision> {
    const { ref, head } = look;
    if (reported.get(ref)?.head !== head) reported.delete(ref);
    for (const rule of rules) {
      const decision = await rule({ ...look, isReportedAgain: () => isReportedAgain(ref, head) });
      if (decision !== null) return decision;
    }
    throw new Error("no rule has decided");
  }

  async function resolve(deployment: Deployment, signal: AbortSignal): Promise<Decision> {
    const { id, ref, trigger, commit: pushed } = deployment;
    const checkout = options.checkout();
    const checkSigned = options.checkSigned();
    const reader = { env: withoutReplacements(checkout.environment), user: checkout.user };
    const read = (commit: string) => readCommit(checkout.repoPath, commit, reader);
    const liveNow = trigger === "image" ? findLastGood(store) : null;
    if (liveNow !== null && liveCommit(liveNow) !== pushed)
      return skip(`${shortCommit(pushed)}, for which the images were found, is not live any more.`);
    // Of a roll back the images are on this machine, and newer images are deployed with the commit that is live.
    const found: FoundHead =
      trigger === "rollback" || trigger === "image"
        ? { kind: "none", detail: "Nobody has signed the images." }
        : await findHead(checkout, deployment, { look, isFirst: !heardAtMs.has(id), signal });
    if (signal.aborted) return ended;
    if (found.kind === "unknown") {
      // Rule 1: while the remote is silent, a push waits.
      const nowMs = clock();
      if (nowMs - (heardAtMs.get(id) ?? nowMs) >= patienceMs) return refuse(found.detail);
      return { kind: "wait", reason: `The remote does not say where the branch is: ${found.detail}` };
    }
    if (found.kind === "none") {
      if (checkSigned !== null && trigger !== "rollback")
        return refuse(`${found.detail} So no signature can be verified.`);
      const commit = isRepository(checkout) ? await read(pushed) : null;
      note(store, deployment, commit, null, true);
      return { kind: "deploy", commit: pushed, isSigned: false };
    }
    heardAtMs.set(id, clock());
    const { commit: head, containsPushed } = found;
    const known = lookUp(store, ref, head, id);
    const { live, last } = known;
    const commit = await read(head);
    const decision = await decide({
      ...known,
      trigger,
      pushed,
      containsPushed,
      isAsked: isAsked(store, deployment, last),
      isBehindLast: async () =>
        last !== null && (await isAncestor(checkout.repoPath, head, liveCommit(last), reader)),
      async findSkip() {
        const reason =
          commit && live && (await findSkip({ store, checkout, paths: paths(), deployment, live, commit }));
        if (reason) note(store, deployment, commit, head, false);
        return reason;
      },
      async judgeChecks() {
        const judged = await checks.judge(ref, head, signal, waitsSinceMs(store, ref, head, last));
        // Not the head itself: one that is skipped now may be deployed later.
        if (judged !== null) note(store, deployment, commit, null, false);
        return judged;
      },
    });
    if (signal.aborted) return ended;
    if (decision.kind !== "deploy") return decision;
    // What is ended half-way throws.
    const checked = checkSigned?.(deployment, head, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    const problem = (await checked) ?? null;
    if (signal.aborted) return ended;
    note(store, deployment, commit, head, problem === null);
    return problem ? { kind: "refused", problem } : { ...decision, isSigned: checkSigned !== null };
  }

  return {
    async resolve(deployment, signal) {
      const decision = await resolve(deployment, signal);
      if (decision.kind !== "wait") heardAtMs.delete(deployment.id);
      else if (!heardAtMs.has(deployment.id)) heardAtMs.set(deployment.id, clock());
      return decision;
    },
    async judgeHead(ref, head) {
      const known = lookUp(store, ref, head, null);
      const { live } = known;
      const decision = await decide({
        ...known,
        pushed: head,
        containsPushed: true,
        trigger: "catch-up",
        isAsked: false,
        isBehindLast: async () => false,
        findSkip: async () =>
          live && listSkipped(store, ref, live).includes(head) ? "It was skipped." : null,
        async judgeChecks() {
          const { signal } = new AbortController();
          const judged = await checks.judge(ref, head, signal, waitsSinceMs(store, ref, head, known.last));
          // One that was not given up waits as a deployment, so that people see it.
          return judged?.kind === "skipped" ? judged : null;
        },
      });
      return decision.kind;
    },
  };
}

function refuse(detail: string): Decision {
  return { kind: "refused", problem: { code: "fetch_failed", detail: `Nothing was run: ${detail}` } };
}

type FoundHead =
  | { readonly kind: "head"; readonly commit: string; readonly containsPushed: boolean }
  | Exclude<RemoteHead, { readonly kind: "head" }>;

/**
 * Finds the head of the branch and fetches it, without moving a ref of the repository. A host reports a push before all
 * of its servers have it, and networks fail: a first look is repeated until the head contains the pushed commit.
 */
async function findHead(
  checkout: Checkout,
  { ref, commit: pushed }: Deployment,
  options: {
    readonly look: ReturnType<typeof createLook>;
    readonly isFirst: boolean;
    readonly signal: AbortSignal;
  },
): Promise<FoundHead> {
  const { look, isFirst, signal } = options;
  const { repoPath, environment, user } = checkout;
  const reader = { env: withoutReplacements(environment), user };
  // The variable of examples/deploy.sh, if DEPLOY_ENV passes it.
  const pausesS = (environment.DEPLOY_RETRY_PAUSES || usualPausesS).split(/\s+/).map(Number);
  const left = isFirst ? pausesS.filter(Number.isFinite) : [];
  const untilMs = performance.now() + longestLookMs;
  for (;;) {
    const head = await look(checkout, ref, signal);
    if (head === null)
      return { kind: "unknown", detail: "the git host is slow, and still being waited for." };
    if (head.kind === "none") return head;
    const containsPushed = head.kind === "head" && (await isAncestor(repoPath, pushed, head.commit, reader));
    const pauseS = performance.now() < untilMs ? left.shift() : undefined;
    if (containsPushed || pauseS === undefined || signal.aborted) {
      if (head.kind === "unknown") return head;
      // A commit that is here is its own ancestor.
      const isFetched = containsPushed || (await isAncestor(repoPath, head.commit, head.commit, reader));
      if (isFetched) return { ...head, containsPushed };
      return { kind: "unknown", detail: `${branchOf(ref)} has moved while it was fetched.` };
    }
    await pause(pauseS * 1_000, signal);
  }
}

/**
 * Makes the look at a branch. A host that takes longer than `maxLookMs` is waited for outside of the turn, and its answer is the one of
 * the next look, if that comes within a minute: the branch may move on.
 *
 * @returns a function that returns null while that goes on
 */
function createLook(maxLookMs: number, clock: () => number) {
  /** By branch; null while there is no answer. */
  const late = new Map<string, { readonly answer: RemoteHead; readonly atMs: number } | null>();

  return async (checkout: Checkout, ref: string, signal: AbortSignal): Promise<RemoteHead | null> => {
    const before = late.get(ref);
    if (before === null) return null;
    late.delete(ref);
    if (before !== undefined && clock() - before.atMs < freshMs) return before.answer;
    const fetching = fetchHead(checkout, ref, signal);
    const turnOver = new AbortController();
    const isOver = pause(maxLookMs, turnOver.signal).then(() => null);
    const head = await Promise.race([fetching, isOver]).finally(() => turnOver.abort());
    if (head !== null) return head;
    late.set(ref, null);
    fetching.then(
      (answer) => (signal.aborted ? late.delete(ref) : late.set(ref, { answer, atMs: clock() })),
      () => late.delete(ref),
    );
    return null;
  };
}

/** Asks for the head and fetches its branch, both at once: each takes a connection, and those take longer than all else here. */
async function fetchHead(checkout: Checkout, ref: string, signal: AbortSignal): Promise<RemoteHead> {
  if (!isRepository(checkout)) return await readRemoteHead(checkout, ref, { signal });
  const [head, failure] = await Promise.all([
    readRemoteHead(checkout, ref, { signal }),
    fetchBranch(checkout, ref, { signal }),
  ]);
  return head.kind === "head" && failure !== null ? { kind: "unknown", detail: failure } : head;
}

/** @param last of a delivery that was sent again, only what came before the run that failed has no say */
function isAsked(store: Store, { id, trigger }: Deployment, last: Deployment | null): boolean {
  if (trigger === "manual") return true;
  return hasDeployment(store, `id = ? AND ${isAfter("asked_after")}`, id, last?.id ?? null);
}

/**
 * Whether a head was the subject of another push or deployment: of any other one than `id`, or of those before it.
 * Deliveries are kept longer than deployments.
 */
function wasSeen(store: Store, ref: string, head: string, is: "IS NOT" | "<", id: number | null): boolean {
  const sql = `SELECT 1 FROM deployments WHERE project = $project AND ref = ? AND id ${is} ?
      AND (commit_id = ? OR checked_out_commit = ?)
    UNION ALL SELECT 1 FROM deliveries WHERE project = $project AND ref = ? AND deployment_id ${is} ? AND commit_id = ?
    LIMIT 1`;
  return store.get(sql, ref, id, head, head, ref, id, head) !== undefined;
}

/** When a head was first to be deployed since another one of its branch succeeded; null: not yet. */
function waitsSinceMs(store: Store, ref: string, head: string, last: Deployment | null): number | null {
  const sql = `SELECT min(created_at_ms) AS ms FROM deployments WHERE project = $project AND ref = ? AND commit_id = ?
    AND ${isAfter("queue_order")}`;
  return (store.get(sql, ref, head, last?.id ?? null)?.ms as number | null | undefined) ?? null;
}

/** If the remote was silent, the commit itself has not failed. */
function findFailed(store: Store, ref: string, head: string, last: Deployment | null) {
  const sql = `SELECT id, state FROM deployments WHERE project = $project AND ref = ? AND coalesce(checked_out_commit, commit_id) = ?
    AND state IN ('failed', 'timed_out', 'cancelled') AND problem_code IS NOT 'fetch_failed' AND ${isAfter("queue_order")} ORDER BY queue_order DESC LIMIT 1`;
  const row = store.get(sql, ref, head, last?.id ?? null);
  return row ? { id: Number(row.id), state: row.state as Deployment["state"] } : null;
}

/** The commits that were skipped for their own sake since something went live. */
function listSkipped(store: Store, ref: string, live: Deployment): readonly string[] {
  const sql = `SELECT checked_out_commit AS id FROM deployments WHERE project = $project AND ref = ? AND state = 'skipped'
    AND checked_out_commit IS NOT NULL AND ${isAfter("queue_order")} ORDER BY queue_order DESC LIMIT 100`;
  return store.all(sql, ref, live.id).map(({ id }) => String(id));
}

interface SkipOptions {
  readonly store: Store;
  readonly paths: readonly string[];
  readonly checkout: Checkout;
  readonly deployment: Deployment;
  readonly live: Deployment;
  readonly commit: Commit;
}

/** Why the head need not be deployed, or null. If git cannot tell, it is deployed. */
async function findSkip(options: SkipOptions): Promise<string | null> {
  const { store, paths, checkout, live, commit } = options;
  if (/\[skip deploy\]/i.test(commit.subject) && (await speaksForAll(options)))
    return `The subject of ${shortCommit(commit.id)} has [skip deploy].`;
  const from = liveCommit(live);
  if (paths.length === 0 || hasTriedSince(store, live)) return null;
  if (!(await isSame(checkout, [from, commit.id], paths))) return null;
  return `No file that DEPLOY_PATHS names differs between ${shortCommit(from)}, which is live, and ${shortCommit(commit.id)}.`;
}

/**
 * Whether everything before the push that the mark belongs to is deployed, or was skipped likewise. Without a commit
 * before, only the newest is known to belong to it.
 */
async function speaksForAll({ store, checkout, deployment, live, commit }: SkipOptions): Promise<boolean> {
  const { ref, before, commit: pushed } = deployment;
  const known = [liveCommit(live), ...listSkipped(store, ref, live)];
  const [tip, own] = pushed !== commit.id ? [pushed, 0] : before === null ? [commit.id, 1] : [before, 0];
  const reader = { env: withoutReplacements(checkout.environment), user: checkout.user };
  const count = await countNewCommits(checkout.repoPath, tip, { known, most: own + 1 }, reader);
  return count !== null && count <= own;
}

/**
 * Whether a script was started since something went live, and did not succeed: then nobody knows what is live.
 *
 * @param which SQL that selects some of them
 */
function hasTriedSince(store: Store, live: Deployment, which = "", ...values: readonly string[]): boolean {
  const isSince = `project = $project AND ${isAfter("run_order")} AND state <> 'succeeded' ${which}`;
  return hasDeployment(store, isSince, live.id, ...values);
}

const diffTimeoutMs = 60_000;

/** Whether git sees no difference between two commits in what `paths` name. */
async function isSame(
  { repoPath, environment, user }: Checkout,
  commits: readonly string[],
  paths: readonly string[],
): Promise<boolean> {
  // Plumbing, so no setting of the user has a part in it. A variable could make the patterns plain names.
  const args = ["diff-tree", "--quiet", "-r", "--no-renames", "--ignore-submodules=none", ...commits, "--"];
  const env = { ...withoutReplacements(environment), GIT_LITERAL_PATHSPECS: "0" };
  const options = { env, user, timeoutMs: diffTimeoutMs };
  const ending = await runGit(repoPath, [...args, ...pathspecs(paths)], options);
  return ending.kind === "exited" && ending.code === 0;
}

/** A pattern of a directory stands for all that is in it: git takes it so only if the pattern has no wildcard. */
function pathspecs(paths: readonly string[]): readonly string[] {
  const isExcluded = (path: string) => path.startsWith("!");
  const specs = paths.flatMap((path) => {
    const spec = isExcluded(path) ? `:(top,exclude,glob)${path.slice(1)}` : `:(top,glob)${path}`;
    return [spec, `${spec}/**`];
  });
  return paths.every(isExcluded) ? [":(top)", ...specs] : specs;
}

const longestSubject = 200;
const longestAuthor = 100;

/**
 * Records what a deployment is about before its script starts, so that this is known whatever happens to the service.
 *
 * @param found the commit that is shown, cut to a bounded length, and printable
 * @param head what it deploys, if that is decided
 */
function note(
  store: Store,
  { id, attempts }: Deployment,
  found: Commit | null,
  head: string | null,
  doesRun: boolean,
): void {
  const subject = printable(found?.subject ?? "", longestSubject).trim() || null;
  const author = printable(found?.author ?? "", longestAuthor).trim() || null;
  const sql = `UPDATE deployments SET checked_out_commit = ?, subject = ?, author = ?, run_order = iif(?, queue_order, run_order)
    WHERE id = ? AND attempts = ? AND state = 'running'`;
  store.transaction(() => store.run(sql, head, subject, author, Number(doesRun), id, attempts));
}
