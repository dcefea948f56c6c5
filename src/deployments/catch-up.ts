import type { Log } from "../log.ts";
import { lookRegularly } from "../look-regularly.ts";
import { isCommitId } from "../receiver/push.ts";
import { findLastDeployedRef } from "./list.ts";
import { recordWish } from "./record.ts";
import type { Store } from "./store.ts";

export type RemoteHead =
  | { readonly kind: "head"; readonly commit: string }
  | { readonly kind: "unknown"; readonly detail: string };

export interface CatchUpOptions {
  readonly store: Store;
  /** The branches that are deployed. */
  readonly refs: readonly string[];
  readonly readRemoteHead: (ref: string) => Promise<RemoteHead>;
  /** Called when there is something new in the queue. */
  readonly wake: () => void;
  readonly log: Log;
  /** 0: never */
  readonly intervalMs: number;
}

export interface CatchUp {
  /** Looks now, and from now on at every interval. */
  readonly start: () => void;
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
  failure: string | null;
  lookedAtMs: number | null;
  /** A head that counts when it is seen once more. */
  doubted: string | null;
}

/**
 * Finds the pushes whose delivery never came: git hosts do not send again what they could not deliver. The branch that
 * was deployed last is compared with the remote; a head that was not deployed becomes a deployment.
 */
export function createCatchUp(options: CatchUpOptions): CatchUp {
  const { log, intervalMs } = options;
  const search: Search = { ...options, failure: null, lookedAtMs: null, doubted: null };
  const looks = lookRegularly(() => look(search), {
    intervalMs,
    onFault: (error) =>
      log.error({ event: "catch_up.failed", err: error }, "Looking for missed pushes failed"),
  });
  return {
    start() {
      if (intervalMs === 0) return;
      looks.now();
      looks.start();
    },
    stop: looks.stop,
    report: () => ({ intervalMs, lookedAtMs: search.lookedAtMs, failure: search.failure }),
  };
}

async function look(search: Search): Promise<void> {
  const { store, refs, readRemoteHead } = search;
  const ref = findLastDeployedRef(store, refs);
  if (ref === null) return;
  const newestBefore = newestId(store);
  const remote = await readRemoteHead(ref);
  search.lookedAtMs = Date.now();
  if (remote.kind === "unknown") return tellFailure(search, ref, remote.detail);
  search.failure = null;
  // A push that came meanwhile knows better than an answer that may be older than it.
  if (!isCommitId(remote.commit) || newestId(store) !== newestBefore) return;
  if (isKnown(search, ref, remote.commit)) return;
  deploy(search, ref, remote.commit);
}

function tellFailure(search: Search, ref: string, detail: string): void {
  const wasFailing = search.failure !== null;
  search.failure = detail;
  if (wasFailing) return;
  const text = `Missed pushes cannot be found for the moment: ${detail}`;
  search.log.warn({ event: "catch_up.failed", ref }, text);
}

function isKnown(search: Search, ref: string, commit: string): boolean {
  const newest = newestOf(search.store, ref);
  const wasSeen = wasSeenBefore(search.store, ref, commit);
  // Who rolled back wants to stay there until the next push, and what was never seen is one.
  const isInPlace = newest?.commits.includes(commit) || (newest?.trigger === "rollback" && wasSeen);
  // An older head may be what a mirror of the host still says: it counts when it is seen twice in a row.
  const isDoubtful = !isInPlace && wasSeen && search.doubted !== commit;
  search.doubted = isDoubtful ? commit : null;
  return isInPlace || isDoubtful;
}

function deploy({ store, log, wake }: Search, ref: string, commit: string): void {
  const { id } = store.transaction(() => recordWish(store, { trigger: "catch-up", ref, commit }));
  const fields = { event: "catch_up.found", deployment: id, ref, commit };
  log.warn(fields, `${ref} is at ${commit.slice(0, 7)}, which no delivery told: deployment ${id} catches up`);
  wake();
}

function newestId(store: Store): number {
  return Number(store.get("SELECT coalesce(max(id), 0) AS id FROM deployments")?.id);
}

interface Newest {
  readonly trigger: string;
  /** What was asked for, and what its script had checked out in the end. */
  readonly commits: readonly unknown[];
}

/** The newest deployment that counts; a failed or cancelled one does: it is not for us to try it again. */
function newestOf(store: Store, ref: string): Newest | null {
  const row = store.get(
    `SELECT commit_id, checked_out_commit, trigger FROM deployments WHERE ref = ? AND state <> 'superseded'
     ORDER BY id DESC LIMIT 1`,
    ref,
  );
  return row ? { trigger: String(row.trigger), commits: [row.commit_id, row.checked_out_commit] } : null;
}

/** Deliveries are remembered longer than deployments. */
function wasSeenBefore(store: Store, ref: string, commit: string): boolean {
  const seenIn = (table: "deployments" | "deliveries", column: "commit_id" | "checked_out_commit") =>
    store.get(`SELECT 1 FROM ${table} WHERE ref = ? AND ${column} = ? LIMIT 1`, ref, commit) !== undefined;
  return (
    seenIn("deployments", "commit_id") ||
    seenIn("deployments", "checked_out_commit") ||
    seenIn("deliveries", "commit_id")
  );
}
