import type { Store } from "../platform/sqlite/store.ts";

/** A push after which only the remote can say whether the branch is at its commit. */
export interface Doubt {
  readonly ref: string;
  readonly before: string | null;
  readonly commit: string;
  /** Whether the delivery came for the first time. A copy proves nothing: anybody may have captured it. */
  readonly isFirst: boolean;
  /** Whether to deploy the commit if the remote does not answer. */
  readonly isLikely: boolean;
}

/** What the remote answered: a verdict on the head, no answer, or an answer that a push has overtaken. */
export type HeadAnswer =
  | { readonly kind: HeadVerdict; readonly head: string }
  | { readonly kind: "unknown" | "overtaken" };

export interface DoubtsOptions {
  readonly store: Store;
  /** Asks the remote about a branch, given its doubts by commit, and deploys a head that is missing. */
  readonly ask: (ref: string, doubts: ReadonlyMap<string, Doubt>) => Promise<HeadAnswer>;
  /** Deploys the commit of a push, because the remote does not answer. */
  readonly deploy: (doubt: Doubt) => void;
  /** The remote is asked at most this often. */
  readonly askEveryMs: number;
  readonly onFault: (error: unknown) => void;
}

export interface Doubts {
  readonly add: (doubt: Doubt) => void;
  readonly stop: () => void;
}

/** The doubts about a branch, by commit, and how often the remote has answered since the last one was added. */
interface BranchDoubts {
  readonly ref: string;
  readonly doubts: ReadonlyMap<string, Doubt>;
  readonly answers: number;
}

/** How often the remote is asked about one push, because servers of a git host can lag behind it. */
const mostAnswers = 3;
/** More than that are a flood: the remote's answer to the newest settles them all. */
const mostDoubts = 100;
/** How often to check whether what runs has ended. */
const lookEveryMs = 1_000;

/**
 * Asks the remote about doubtful pushes, one branch at a time and at most once in `askEveryMs`, however many come. It
 * asks about a first delivery at once, and believes it together with the remote. A copy waits until nothing of its
 * branch runs or waits: what is live then was pulled from this remote, so the remote does not lag behind it.
 */
export function createDoubts({ store, ask, deploy, askEveryMs, onFault }: DoubtsOptions): Doubts {
  const open = new Map<string, BranchDoubts>();
  let askedAtMs = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  let isAsking = false;
  let isStopped = false;

  /** A copy does not replace the first delivery of its commit. */
  function merge({ ref, doubts, answers }: BranchDoubts): void {
    const known = open.get(ref);
    const all = [...(known?.doubts ?? []), ...doubts];
    const inOrder = all.sort(([, one], [, other]) => +one.isFirst - +other.isFirst);
    const newest = new Map(inOrder.slice(-mostDoubts));
    open.set(ref, { ref, doubts: newest, answers: Math.min(answers, known?.answers ?? answers) });
  }

  function schedule(leastMs: number): void {
    clearTimeout(timer);
    if (isStopped) return;
    const waitMs = Math.max(leastMs, askedAtMs + askEveryMs - performance.now());
    timer = setTimeout(() => askNext().catch(onFault), waitMs).unref();
  }

  async function askNext(): Promise<void> {
    isAsking = true;
    try {
      const ready = [...open.values()].find((branch) => isReady(store, branch));
      if (ready) await askAbout(ready);
    } catch (error) {
      onFault(error);
    }
    isAsking = false;
    if (open.size > 0) schedule(lookEveryMs);
  }

  async function askAbout({ ref, doubts, answers }: BranchDoubts): Promise<void> {
    open.delete(ref);
    const answer = await ask(ref, doubts);
    askedAtMs = performance.now();
    if (isStopped) return;
    const likely = [...doubts.values()].findLast(({ isLikely }) => isLikely);
    if (answer.kind === "unknown" && likely) deploy(likely);
    const answered = { ref, doubts, answers: answer.kind === "overtaken" ? answers : answers + 1 };
    if (!isResolved(answered, answer)) merge(answered);
  }

  return {
    add(doubt) {
      merge({ ref: doubt.ref, doubts: new Map([[doubt.commit, doubt]]), answers: 0 });
      if (!isAsking) schedule(0);
    },
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}

function isReady(store: Store, { ref, doubts }: BranchDoubts): boolean {
  const newest = findNewest(store, ref);
  const isPressing = [...doubts.values()].some((one) => one.isFirst && !newest?.commits.includes(one.commit));
  const sql =
    "SELECT 1 FROM deployments WHERE project = $project AND ref = ? AND state IN ('queued', 'running', 'interrupted')";
  return isPressing || store.get(sql, ref) === undefined;
}

function isResolved({ doubts, answers }: BranchDoubts, answer: HeadAnswer): boolean {
  if (answer.kind === "overtaken") return false;
  if (answers >= mostAnswers) return true;
  return answer.kind === "in place" ? doubts.has(answer.head) : answer.kind !== "doubtful";
}

/** What the head of a branch at the remote means: it is deployed, it may be stale, or it is missing. */
export type HeadVerdict = "in place" | "doubtful" | "missing";

export type BelieveHead = (ref: string, head: string, isConfirmed?: boolean) => HeadVerdict;

/**
 * Makes the function that decides whether to believe the head that the remote reports. A head that was never seen is
 * missing. An older one may come from a mirror that lags: it is missing if the remote reports it twice in a row, at
 * least `confirmMs` apart, or if a push of this very commit confirms it. After a roll back an older head changes
 * nothing.
 */
export function createBelieveHead(store: Store, confirmMs: number): BelieveHead {
  let doubted: { readonly ref: string; readonly head: string; readonly sinceMs: number } | null = null;
  return (ref, head, isConfirmed = false) => {
    const newest = findNewest(store, ref);
    const isOld = wasSeen(store, ref, head);
    const before = doubted;
    doubted = null;
    // A roll back stays until the next push, and a head that was never seen is one.
    if (newest?.commits.includes(head) || (newest?.trigger === "rollback" && isOld)) return "in place";
    if (!isOld || isConfirmed) return "missing";
    const isRepeated = before?.ref === ref && before.head === head;
    if (isRepeated && performance.now() - before.sinceMs >= confirmMs) return "missing";
    doubted = isRepeated ? before : { ref, head, sinceMs: performance.now() };
    return "doubtful";
  };
}

/** The newest deployment that was not superseded. A failed or cancelled one counts: it is not run again unasked. */
export function findNewest(store: Store, ref: string) {
  const row = store.get(
    `SELECT commit_id, checked_out_commit, trigger FROM deployments WHERE project = $project AND ref = ? AND state <> 'superseded'
     ORDER BY id DESC LIMIT 1`,
    ref,
  );
  return row ? { trigger: String(row.trigger), commits: [row.commit_id, row.checked_out_commit] } : null;
}

/** Deliveries are kept longer than deployments. */
function wasSeen(store: Store, ref: string, commit: string): boolean {
  const isIn = (sql: string) =>
    store.get(`${sql} = ? AND project = $project AND ref = ? LIMIT 1`, commit, ref) !== undefined;
  return (
    isIn("SELECT 1 FROM deployments WHERE commit_id") ||
    isIn("SELECT 1 FROM deployments WHERE checked_out_commit") ||
    isIn("SELECT 1 FROM deliveries WHERE commit_id")
  );
}
