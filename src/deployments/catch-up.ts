import type { Log } from "../log.ts";
import { repeat } from "../platform/repeat.ts";
import { isCommitId } from "../receiver/push.ts";
import { createJudgeHead, type JudgeHead } from "./believe-head.ts";
import type { RemoteHead } from "./deployment.ts";
import { type Answer, createDoubts, type Doubt } from "./doubts.ts";
import { findLastDeployedRef } from "./list.ts";
import { recordWish } from "./record.ts";
import type { Store } from "./store.ts";

export interface CatchUpOptions {
  readonly store: Store;
  /** The branches that are deployed. */
  readonly refs: readonly string[];
  readonly readRemoteHead: (ref: string) => Promise<RemoteHead>;
  /** Called when there is something new in the queue. */
  readonly wake: () => void;
  readonly log: Log;
  /** 0: only about doubtful pushes */
  readonly intervalMs: number;
  /** The remote is asked about doubtful pushes at most this often; 10 s if it is not given. */
  readonly askEveryMs?: number;
}

export interface CatchUp {
  /** Looks now, and from now on at every interval. */
  readonly start: () => void;
  /** Asks the remote soon whether it is at the commit of a push that is doubtful. */
  readonly settle: (doubt: Doubt) => void;
  readonly stop: () => void;
  readonly report: () => CatchUpReport;
}

/** Whether missed pushes are found, for a person who asks. */
export interface CatchUpReport {
  /** 0: never looked for */
  readonly intervalMs: number;
  /** When the remote was asked last, or null where it was not yet. */
  readonly lookedAtMs: number | null;
  /** Why the remote did not say, or null. */
  readonly failure: string | null;
}

/** What was found out so far. */
interface Search extends CatchUpOptions {
  readonly judgeHead: JudgeHead;
  failure: string | null;
  lookedAtMs: number | null;
  isStopped: boolean;
}

/**
 * Finds the pushes whose delivery never came: git hosts do not send again what they could not deliver. The branch that
 * was deployed last is compared with the remote; a head that was not deployed becomes a deployment. The remote also
 * decides about pushes that may be old.
 */
export function createCatchUp(options: CatchUpOptions): CatchUp {
  const { store, log, intervalMs, askEveryMs = 10_000 } = options;
  const confirmMs = intervalMs === 0 ? askEveryMs : Math.min(askEveryMs, intervalMs);
  const judgeHead = createJudgeHead(store, confirmMs);
  const search: Search = { ...options, judgeHead, failure: null, lookedAtMs: null, isStopped: false };
  const onFault = (error: unknown) =>
    log.error({ event: "catch_up.failed", err: error }, "Looking for missed pushes failed");
  const looks = repeat(() => lookAtLastDeployed(search), { intervalMs, onFault });
  const doubts = createDoubts({
    store,
    ask: (ref, doubts) => look(search, ref, doubts),
    deploy: (doubt) => deployUnasked(search, doubt),
    askEveryMs,
    onFault,
  });
  return {
    start() {
      search.isStopped = false;
      if (intervalMs === 0) return;
      looks.now();
      looks.start();
    },
    settle: doubts.add,
    stop() {
      search.isStopped = true;
      looks.stop();
      doubts.stop();
    },
    report: () => ({ intervalMs, lookedAtMs: search.lookedAtMs, failure: search.failure }),
  };
}

async function lookAtLastDeployed(search: Search): Promise<void> {
  const ref = findLastDeployedRef(search.store, search.refs);
  if (ref !== null) await look(search, ref);
}

/** Asks the remote where `ref` is, and deploys that if it is missing. */
async function look(
  search: Search,
  ref: string,
  doubts: ReadonlyMap<string, Doubt> = new Map(),
): Promise<Answer> {
  const { store, readRemoteHead, judgeHead } = search;
  const newestBefore = newestId(store);
  const remote = await readRemoteHead(ref);
  if (search.isStopped) return { kind: "overtaken" };
  search.lookedAtMs = Date.now();
  if (remote.kind === "unknown") {
    tellFailure(search, ref, remote.detail);
    return { kind: "unknown" };
  }
  search.failure = null;
  // A push that came meanwhile knows better than an answer that may be older than it.
  if (!isCommitId(remote.commit) || newestId(store) !== newestBefore) return { kind: "overtaken" };
  const head = remote.commit;
  const doubt = doubts.get(head);
  const kind = judgeHead(ref, head, doubt?.isFirst);
  const step = { ref, before: doubt?.before ?? null, commit: head };
  if (kind === "missing") deploy(search, step, `${ref} is at ${head.slice(0, 7)}`);
  return { kind, head };
}

/** Deploys a push that may be old though the remote, which would know, does not answer. */
function deployUnasked(search: Search, doubt: Doubt): void {
  const commit = doubt.commit.slice(0, 7);
  deploy(search, doubt, `The remote does not say where ${doubt.ref} is, a push says ${commit}`);
}

function tellFailure(search: Search, ref: string, detail: string): void {
  const wasFailing = search.failure !== null;
  search.failure = detail;
  if (wasFailing) return;
  const text = `Missed pushes cannot be found for the moment: ${detail}`;
  search.log.warn({ event: "catch_up.failed", ref }, text);
}

function deploy({ store, log, wake }: Search, { ref, before, commit }: Step, why: string): void {
  const { id } = store.transaction(() => recordWish(store, { trigger: "catch-up", ref, before, commit }));
  const fields = { event: "catch_up.found", deployment: id, ref, commit };
  log.warn(fields, `${why}, which is not what was deployed last: deployment ${id} catches up`);
  wake();
}

type Step = Pick<Doubt, "ref" | "before" | "commit">;

function newestId(store: Store): number {
  return Number(store.get("SELECT coalesce(max(id), 0) AS id FROM deployments")?.id);
}
