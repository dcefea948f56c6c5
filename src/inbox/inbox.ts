import { randomUUID } from "node:crypto";
import { openStore, type Row, type Store } from "../platform/sqlite/store.ts";
import { canWrite, checkAtMostEvery } from "../platform/sqlite/write-probe.ts";
import type { Push, PushRecord, StoredPush, Would } from "../receiver/push.ts";
import { mostOffered, type OfferedSecretUse, type TakeRequest, type TakeResponse } from "./offer.ts";
import { inboxSchema } from "./schema.ts";
import { createSenders, type Senders } from "./senders.ts";

/** Keeps verified pushes on disk until another process has recorded them. */
export interface Inbox {
  /**
   * Resolves when the push is on disk, and recorded if that takes less than half a second. Rejects if it could not be
   * written.
   */
  readonly add: (project: string, push: Push) => Promise<PushRecord | StoredPush>;
  /** @returns null if nobody answers within half a second */
  readonly dryRun: (project: string, push: Push) => Promise<Would | null>;
  readonly noteSecretUse: (use: OfferedSecretUse) => void;
  /** Settles what was taken before, and gives what waits: at once, or when there is something. */
  readonly take: (request: TakeRequest, signal: AbortSignal) => Promise<TakeResponse>;
  readonly countWaiting: () => number;
  /** When the oldest push that waits was received, in milliseconds since 1970; null if none waits. */
  readonly waitingSinceMs: () => number | null;
  /** Why the inbox cannot be written, or null. */
  readonly findFault: () => string | null;
  readonly movedAsideTo: string | null;
  readonly close: () => void;
}

const removalMs = 1_000;
const probeIntervalMs = 5_000;
const unwritable = "The inbox cannot be written. The log of the service says more.";
/** A use of a secret is passed on with the next push, or after this time. */
const usesWaitMs = 1_000;

interface InboxState {
  readonly store: Store;
  id: string;
  readonly senders: Senders;
  /** By project and secret: the last use of each. */
  readonly secretUses: Map<string, OfferedSecretUse>;
  /** Every push up to this one is recorded by the other process. */
  recordedSeq: number;
  /** The same on its disk. The row may still be here. */
  syncedSeq: number;
  removalTimer: NodeJS.Timeout | undefined;
  usesTimer: NodeJS.Timeout | undefined;
  /** Called when there is something to take. */
  wake: () => void;
  /** Ends the wait of the request that waits. */
  replace: () => void;
}

/**
 * Opens the inbox in `directory`.
 *
 * @throws ProblemError `state_unusable` if it cannot be written, or was made by a newer Hotpush
 */
export function openInbox(directory: string): Inbox {
  const store = openStore(directory, inboxSchema);
  const state: InboxState = {
    ...{ store, id: inboxId(store), secretUses: new Map() },
    senders: createSenders(() => state.wake()),
    ...{ recordedSeq: 0, syncedSeq: 0, removalTimer: undefined, usesTimer: undefined },
    ...{ wake: () => {}, replace: () => {} },
  };
  return {
    async add(project, push) {
      const seq = await store.batch(() => {
        removeSynced(state);
        return insert(store, project, push);
      });
      state.wake();
      return (await state.senders.waitForRecord(seq)) ?? { kind: "stored", delivery: seq };
    },
    dryRun: state.senders.waitForDryRun,
    noteSecretUse(use) {
      state.secretUses.set(`${use.project} ${use.slot}`, use);
      // Most come with a push, which would miss the request that this alone answers.
      state.usesTimer ??= setTimeout(() => wakeForUses(state), usesWaitMs).unref();
    },
    take: (request, signal) => take(state, request, signal),
    countWaiting: () =>
      Number(store.get("SELECT count(*) AS n FROM pushes WHERE seq > ?", state.recordedSeq)?.n),
    waitingSinceMs() {
      const sql = "SELECT received_at_ms FROM pushes WHERE seq > ? ORDER BY seq LIMIT 1";
      const oldest = store.get(sql, state.recordedSeq);
      return oldest ? Number(oldest.received_at_ms) : null;
    },
    findFault: checkAtMostEvery(probeIntervalMs, () => (canWrite(store) ? null : unwritable)),
    movedAsideTo: store.movedAsideTo,
    close() {
      clearTimeout(state.removalTimer);
      clearTimeout(state.usesTimer);
      store.close();
    },
  };
}

function wakeForUses(state: InboxState): void {
  state.usesTimer = undefined;
  state.wake();
}

/** An inbox that was moved aside numbers its pushes from 1 again: its id says that it is another one. */
function inboxId(store: Store): string {
  const known = store.get("SELECT id FROM inbox");
  return known ? String(known.id) : renewId(store);
}

function renewId(store: Store): string {
  const id = randomUUID();
  store.transaction(() => {
    store.run("DELETE FROM inbox");
    store.run("INSERT INTO inbox VALUES (?)", id);
  });
  return id;
}

function insert(store: Store, project: string, push: Push): number {
  const sql = "INSERT INTO pushes (project, push, received_at_ms) VALUES (?, ?, ?)";
  return store.run(sql, project, JSON.stringify(push), Date.now()).id;
}

async function take(state: InboxState, request: TakeRequest, signal: AbortSignal): Promise<TakeResponse> {
  // Read again: another `receive` on this inbox may have renewed it.
  state.id = inboxId(state.store);
  if (request.inbox === state.id && isAhead(state, request)) state.id = renewId(state.store);
  const nothing = { inbox: state.id, pushes: [], dryRuns: [], secretUses: [] };
  if (request.inbox !== state.id) return nothing;
  settle(state, request);
  // Only one request waits: an older one was left by a client that is gone.
  state.replace();
  const replaced = new AbortController();
  state.replace = () => replaced.abort();
  const over = AbortSignal.any([signal, replaced.signal]);
  while (!over.aborted) {
    const response = collect(state, request.recordedSeq);
    if (response.pushes.length + response.dryRuns.length + response.secretUses.length > 0) return response;
    await news(state, over);
  }
  return nothing;
}

/**
 * Whether more was taken than was ever stored here: this inbox was restored from a copy, or somebody else answered in its
 * place. Under the same id its next pushes would count as recorded, and be lost.
 */
function isAhead({ store }: InboxState, { recordedSeq }: TakeRequest): boolean {
  const row = store.get("SELECT seq FROM sqlite_sequence WHERE name = 'pushes'");
  return recordedSeq > Number(row?.seq ?? 0);
}

/**
 * Answers the senders of what is recorded. When the record is on disk, the rows are removed with the next push, or soon: a
 * sync for that alone would keep the senders of others waiting, and a row that comes back after a power cut is not
 * recorded again.
 */
function settle(state: InboxState, { recordedSeq, syncedSeq, answers, dryRuns }: TakeRequest): void {
  state.recordedSeq = Math.max(state.recordedSeq, recordedSeq);
  if (syncedSeq > state.syncedSeq) {
    state.syncedSeq = syncedSeq;
    state.removalTimer ??= setTimeout(() => removeSoon(state), removalMs).unref();
  }
  state.senders.answer({ answers, dryRuns });
}

function removeSoon(state: InboxState): void {
  state.removalTimer = undefined;
  // If the disk is full, the next push says so to somebody.
  state.store.batch(() => removeSynced(state)).catch(() => {});
}

/** Call it in a transaction. */
function removeSynced({ store, syncedSeq }: InboxState): void {
  store.run("DELETE FROM pushes WHERE seq <= ?", syncedSeq);
}

function collect(state: InboxState, afterSeq: number): TakeResponse {
  const { store, id, senders, secretUses } = state;
  const rows = store.all("SELECT * FROM pushes WHERE seq > ? ORDER BY seq LIMIT ?", afterSeq, mostOffered);
  const uses = [...secretUses.values()].slice(0, mostOffered);
  for (const { project, slot } of uses) secretUses.delete(`${project} ${slot}`);
  return { inbox: id, pushes: rows.map(toOffer), dryRuns: senders.takeDryRuns(), secretUses: uses };
}

function toOffer({ seq, project, push }: Row) {
  return { seq: Number(seq), project: String(project), push: JSON.parse(String(push)) as Push };
}

/** Resolves when there is something to take, or `over` is aborted. */
function news(state: InboxState, over: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    state.wake = resolve;
    over.addEventListener("abort", () => resolve(), { once: true });
  });
}
