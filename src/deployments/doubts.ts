import { findNewest, type Verdict } from "./believe-head.ts";
import type { Store } from "./store.ts";

/** A push after which only the remote can say whether the branch is at its commit. */
export interface Doubt {
  readonly ref: string;
  readonly before: string | null;
  readonly commit: string;
  /** Whether the delivery came for the first time. A copy of one proves nothing: anybody may have kept it. */
  readonly isFirst: boolean;
  /** Whether to deploy the commit if the remote does not answer. */
  readonly isLikely: boolean;
}

/** What the remote answered: a verdict on the head, no answer, or one that a push overtook meanwhile. */
export type Answer =
  | { readonly kind: Verdict; readonly head: string }
  | { readonly kind: "unknown" | "overtaken" };

export interface DoubtsOptions {
  readonly store: Store;
  /** Asks the remote about a branch, given the doubts by their commits, and deploys a head that is missing. */
  readonly ask: (ref: string, doubts: ReadonlyMap<string, Doubt>) => Promise<Answer>;
  /** Deploys what a push says, because the remote does not answer. */
  readonly deploy: (doubt: Doubt) => void;
  /** The remote is asked at most this often. */
  readonly askEveryMs: number;
  readonly onFault: (error: unknown) => void;
}

export interface Doubts {
  readonly add: (doubt: Doubt) => void;
  readonly stop: () => void;
}

/** The doubts about a branch, by commit, and how often the remote has answered since the last was added. */
interface Open {
  readonly ref: string;
  readonly doubts: ReadonlyMap<string, Doubt>;
  readonly answers: number;
}

interface Asking extends DoubtsOptions {
  readonly open: Map<string, Open>;
  askedAtMs: number;
  timer: NodeJS.Timeout | undefined;
  isAsking: boolean;
  isStopped: boolean;
}

/** The servers of a host that lag are given this many chances to know of a push. */
const mostAnswers = 3;
/** How often to look whether what runs has ended. */
const lookEveryMs = 1_000;

/**
 * Asks the remote about doubtful pushes, one branch at a time and at most once in `askEveryMs`, however many come. A
 * first delivery is asked about at once; together with the word of the remote it counts. A copy waits until nothing of
 * its branch runs or waits: what is live then was pulled from this remote, so the remote does not lag behind it.
 */
export function createDoubts(options: DoubtsOptions): Doubts {
  const state = { askedAtMs: Number.NEGATIVE_INFINITY, timer: undefined, isAsking: false, isStopped: false };
  const asking: Asking = { ...options, open: new Map(), ...state };
  return {
    add(doubt) {
      merge(asking, { ref: doubt.ref, doubts: new Map([[doubt.commit, doubt]]), answers: 0 });
      if (!asking.isAsking) schedule(asking, 0);
    },
    stop() {
      asking.isStopped = true;
      clearTimeout(asking.timer);
    },
  };
}

/** A copy takes nothing away from the first delivery of its commit. */
function merge({ open }: Asking, { ref, doubts, answers }: Open): void {
  const known = open.get(ref);
  const all = [...(known?.doubts ?? []), ...doubts].sort(
    ([, one], [, other]) => +one.isFirst - +other.isFirst,
  );
  open.set(ref, { ref, doubts: new Map(all), answers: Math.min(answers, known?.answers ?? answers) });
}

function schedule(asking: Asking, leastMs: number): void {
  clearTimeout(asking.timer);
  if (asking.isStopped) return;
  const waitMs = Math.max(leastMs, asking.askedAtMs + asking.askEveryMs - performance.now());
  asking.timer = setTimeout(() => void askNext(asking), waitMs).unref();
}

async function askNext(asking: Asking): Promise<void> {
  asking.isAsking = true;
  try {
    const ready = [...asking.open.values()].find((open) => isReady(asking.store, open));
    if (ready) await settle(asking, ready);
  } catch (error) {
    asking.onFault(error);
  }
  asking.isAsking = false;
  if (asking.open.size > 0) schedule(asking, lookEveryMs);
}

function isReady(store: Store, { ref, doubts }: Open): boolean {
  const newest = findNewest(store, ref);
  const isPressing = [...doubts.values()].some((one) => one.isFirst && !newest?.commits.includes(one.commit));
  const sql = "SELECT 1 FROM deployments WHERE ref = ? AND state IN ('queued', 'running', 'interrupted')";
  return isPressing || store.get(sql, ref) === undefined;
}

async function settle(asking: Asking, { ref, doubts, answers }: Open): Promise<void> {
  asking.open.delete(ref);
  const answer = await asking.ask(ref, doubts);
  asking.askedAtMs = performance.now();
  if (asking.isStopped) return;
  const likely = [...doubts.values()].findLast(({ isLikely }) => isLikely);
  if (answer.kind === "unknown" && likely) asking.deploy(likely);
  const answered = { ref, doubts, answers: answer.kind === "overtaken" ? answers : answers + 1 };
  if (!isSettled(answered, answer)) merge(asking, answered);
}

function isSettled({ doubts, answers }: Open, answer: Answer): boolean {
  if (answer.kind === "overtaken") return false;
  if (answers >= mostAnswers) return true;
  return answer.kind === "in place" ? doubts.has(answer.head) : answer.kind !== "doubtful";
}
