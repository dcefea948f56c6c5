import { randomUUID } from "node:crypto";
import type { Schema } from "../platform/sqlite/open-database.ts";
import { openStore, type Row, type Store } from "../platform/sqlite/store.ts";
import type { Push, PushRecord, StoredPush, Would } from "../receiver/push.ts";
import {
  mostOffered,
  type OfferedDryRun,
  type OfferedSecretUse,
  type TakeRequest,
  type TakeResponse,
} from "./offer.ts";

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

/** How long the sender of a push waits for its record. Git hosts hang up after 10 s. */
const recordWaitMs = 500;
/** A dry run that nobody takes is forgotten when its sender is; this bounds those that wait. */
const mostDryRuns = 100;
const removalMs = 1_000;
/** A use of a secret is passed on with the next push, or after this time. */
const usesWaitMs = 1_000;

const schema: Schema = {
  file: "inbox.db",
  checkedTable: "pushes",
  migrations: [
    `CREATE TABLE pushes (
       seq            INTEGER PRIMARY KEY AUTOINCREMENT,
       project        TEXT NOT NULL,
       push           TEXT NOT NULL,     -- JSON
       received_at_ms INTEGER NOT NULL
     ) STRICT;
     CREATE TABLE inbox (id TEXT NOT NULL) STRICT;
     CREATE TABLE probes (id INTEGER PRIMARY KEY CHECK (id = 1), at_ms INTEGER NOT NULL) STRICT;`,
  ],
};

interface Waiting<Answer> {
  readonly resolve: (answer: Answer) => void;
}

interface InboxState {
  readonly store: Store;
  id: string;
  readonly records: Map<number, Waiting<PushRecord>>;
  readonly dryRuns: Map<number, Waiting<Would | null>>;
  /** Those that were not taken yet. */
  untaken: OfferedDryRun[];
  /** By project and secret: the last use of each. */
  readonly secretUses: Map<string, OfferedSecretUse>;
  lastDryRun: number;
  /** Every push up to this one is recorded by the other process. Its row may still be there. */
  recordedSeq: number;
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
  const store = openStore(directory, schema);
  const state: InboxState = {
    ...{ store, id: inboxId(store), records: new Map(), dryRuns: new Map(), secretUses: new Map() },
    ...{
      untaken: [],
      lastDryRun: 0,
      recordedSeq: 0,
      removalTimer: undefined,
      usesTimer: undefined,
      wake: () => {},
      replace: () => {},
    },
  };
  return {
    async add(project, push) {
      const seq = await store.batch(() => {
        removeRecorded(state);
        return insert(store, project, push);
      });
      state.wake();
      return await recordOf(state, seq);
    },
    dryRun: (project, push) => addDryRun(state, project, push),
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
    findFault: createProbe(store),
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

async function recordOf({ records }: InboxState, seq: number): Promise<PushRecord | StoredPush> {
  const record = await answerOf<PushRecord>((waiting) => records.set(seq, waiting));
  records.delete(seq);
  return record ?? { kind: "stored", delivery: seq };
}

async function addDryRun(state: InboxState, project: string, push: Push): Promise<Would | null> {
  if (state.dryRuns.size >= mostDryRuns) return null;
  state.lastDryRun += 1;
  const offer = { id: state.lastDryRun, project, push };
  const would = await answerOf<Would | null>((waiting) => {
    state.dryRuns.set(offer.id, waiting);
    state.untaken.push(offer);
    state.wake();
  });
  state.dryRuns.delete(offer.id);
  state.untaken = state.untaken.filter(({ id }) => id !== offer.id);
  return would;
}

/** Resolves with what `waiting` is resolved with, or with null after half a second. */
function answerOf<Answer>(add: (waiting: Waiting<Answer>) => void): Promise<Answer | null> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(null), recordWaitMs);
    add({
      resolve(answer) {
        clearTimeout(timer);
        resolve(answer);
      },
    });
  });
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
 * Answers the senders of what is recorded. The rows are removed with the next push, or soon: a sync of the disk for that
 * alone would keep the senders of others waiting, and a row that comes back after a power cut is not recorded again.
 */
function settle(state: InboxState, { recordedSeq, answers, dryRuns }: TakeRequest): void {
  if (recordedSeq > state.recordedSeq) {
    state.recordedSeq = recordedSeq;
    state.removalTimer ??= setTimeout(() => removeSoon(state), removalMs).unref();
  }
  for (const { seq, record } of answers) state.records.get(seq)?.resolve(record);
  for (const { id, would } of dryRuns) state.dryRuns.get(id)?.resolve(would);
}

function removeSoon(state: InboxState): void {
  state.removalTimer = undefined;
  // If the disk is full, the next push says so to somebody.
  state.store.batch(() => removeRecorded(state)).catch(() => {});
}

/** Call it in a transaction. */
function removeRecorded({ store, recordedSeq }: InboxState): void {
  store.run("DELETE FROM pushes WHERE seq <= ?", recordedSeq);
}

function collect(state: InboxState, afterSeq: number): TakeResponse {
  const { store, id, secretUses } = state;
  const rows = store.all("SELECT * FROM pushes WHERE seq > ? ORDER BY seq LIMIT ?", afterSeq, mostOffered);
  const uses = [...secretUses.values()].slice(0, mostOffered);
  for (const { project, slot } of uses) secretUses.delete(`${project} ${slot}`);
  const dryRuns = state.untaken.splice(0, mostOffered);
  return { inbox: id, pushes: rows.map(toOffer), dryRuns, secretUses: uses };
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

const probeIntervalMs = 5_000;

/** Strangers may ask for it as often as they like, so the disk is written to only now and then. */
function createProbe(store: Store): () => string | null {
  let probedAtMs = Number.NEGATIVE_INFINITY;
  let fault: string | null = null;
  return () => {
    if (performance.now() - probedAtMs < probeIntervalMs) return fault;
    fault = probe(store);
    probedAtMs = performance.now();
    return fault;
  };
}

function probe(store: Store): string | null {
  const sql = "INSERT INTO probes VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET at_ms = excluded.at_ms";
  try {
    store.transaction(() => store.run(sql, Date.now()));
    return null;
  } catch {
    return "The inbox cannot be written. The log of the service says more.";
  }
}
