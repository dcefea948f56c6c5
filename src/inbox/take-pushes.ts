import type { Log } from "../log.ts";
import { type HttpAnswer, sendHttp } from "../platform/http.ts";
import { pause } from "../platform/keep-trying.ts";
import { createLogThrottle } from "../platform/log-throttle.ts";
import { withShortPath } from "../platform/unix-socket.ts";
import type { PushRecord, Would } from "../receiver/push.ts";
import {
  mostOffered,
  type Offer,
  type OfferedDryRun,
  type OfferedSecretUse,
  type TakeRequest,
  takeWaitMs,
} from "./offer.ts";
import { type ReadOffers, readOffers } from "./read-offers.ts";

/** Up to where an inbox is recorded. */
export interface InboxCursor {
  readonly inbox: string;
  readonly seq: number;
}

export interface TakeOptions {
  readonly socketPath: string;
  readonly readCursor: () => InboxCursor | null;
  /**
   * Records a push together with the cursor, in one transaction, so that it is recorded exactly once. Pushes that are
   * given in the same turn share it. Gives null for a push that is refused: its place is still recorded.
   */
  readonly record: (offer: Offer, cursor: InboxCursor) => Promise<PushRecord | null>;
  /** Its sender waits for half a second: an answer that takes longer is of no use. */
  readonly dryRun: (offer: OfferedDryRun) => Promise<Would | null>;
  readonly onSecretUse: (use: OfferedSecretUse) => void;
  /** Moves the cursor past pushes that are no pushes. */
  readonly skip: (cursor: InboxCursor) => void;
  /** Puts on disk what was recorded. The other side keeps every push until then. @throws if that fails */
  readonly sync: () => void;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** Whether pushes come in, for a person. */
export interface TakeReport {
  readonly reachedAtMs: number | null;
  /** Why the inbox could not be reached, or null. */
  readonly failure: string | null;
}

export interface Taking {
  readonly report: () => TakeReport;
  /** Resolves when the signal was aborted and nothing is under way. Never rejects. */
  readonly ended: Promise<void>;
}

const retryMs = 1_000;
/** What a response of the inbox is cut after: 20 pushes take 20 kB. */
const longestResponseBytes = 256 * 1024;
const answerMarginMs = 5_000;
/** How far apart the responses are read at least, and the time that all dry runs of one response have. */
const leastRoundMs = 5;
const dryRunsMs = 100;
/** Many pushes share one sync, and no sender waits for it. */
const syncAfterMs = 1_000;
const linesPerMinute = 10;

type Answers = Pick<TakeRequest, "answers" | "dryRuns">;
const noAnswers: Answers = { answers: [], dryRuns: [] };

interface TakingState extends TakeOptions {
  cursor: InboxCursor | null;
  /** Up to where the record is on disk. */
  syncedSeq: number;
  syncTimer: NodeJS.Timeout | undefined;
  /** Whether the last request was answered. If not, the next one names no inbox, and is answered at once. */
  isReached: boolean;
  report: TakeReport;
  /** The other side decides how often something happens, so the lines about it are bounded. */
  readonly mayLog: (event: string) => boolean;
}

/**
 * Takes pushes from the inbox of `receive`, and records them. The other side may be in the hands of an attacker: it is
 * asked, and never asks; what it says is bounded in size and time, and read as data of which nothing is believed.
 */
export function takePushes(options: TakeOptions): Taking {
  const report: TakeReport = { reachedAtMs: null, failure: null };
  const mayLog = createLogThrottle<string>(linesPerMinute, 60_000, (event, count) =>
    options.log.warn({ event: "inbox.more", kind: event, count }, `${count} more of ${event}`),
  );
  const state: TakingState = {
    ...{ ...options, cursor: options.readCursor(), isReached: false, report, mayLog },
    ...{ syncedSeq: 0, syncTimer: undefined },
  };
  // A process that was killed may have left what is recorded, and not on disk.
  syncSoon(state);
  return { report: () => state.report, ended: takeAll(state).finally(() => clearTimeout(state.syncTimer)) };
}

async function takeAll(state: TakingState): Promise<void> {
  let answers = noAnswers;
  let restUntilMs = 0;
  while (!state.signal.aborted) {
    try {
      if (!state.isReached) await reach(state);
      const response = await ask(state, state.cursor, answers);
      answers = noAnswers;
      // A flood, whose responses are full, must leave half of the time for everything else. The rest comes here, so that no
      // sender waits for it whose push is recorded already.
      const leftMs = restUntilMs - performance.now();
      if (leftMs > 0) await pause(leftMs, state.signal);
      const startMs = performance.now();
      const offers = read(state, response);
      answers = await settle(state, offers);
      const endMs = performance.now();
      const restMs = (endMs - startMs) * (offers.pushes.length / mostOffered);
      restUntilMs = Math.max(endMs + restMs, startMs + leastRoundMs);
    } catch (error) {
      state.isReached = false;
      reportFailure(state, error);
      await pause(retryMs, state.signal);
    }
  }
}

function syncSoon(state: TakingState): void {
  state.syncTimer ??= setTimeout(() => syncNow(state), syncAfterMs).unref();
}

function syncNow(state: TakingState): void {
  state.syncTimer = undefined;
  try {
    state.sync();
    state.syncedSeq = state.cursor?.seq ?? 0;
  } catch (error) {
    if (state.mayLog("store.failed"))
      state.log.error({ event: "store.failed", err: error }, "Recorded pushes cannot be put on disk");
    syncSoon(state);
  }
}

async function reach(state: TakingState): Promise<void> {
  const { inbox } = read(state, await ask(state, null, noAnswers));
  state.isReached = true;
  if (inbox !== state.cursor?.inbox) startAgain(state, inbox);
}

function startAgain(state: TakingState, inbox: string): void {
  if (state.cursor && state.mayLog("inbox.changed"))
    state.log.warn({ event: "inbox.changed" }, "The inbox is another one: it starts again");
  state.cursor = { inbox, seq: 0 };
  state.syncedSeq = 0;
}

async function ask(
  { socketPath, syncedSeq, signal }: TakingState,
  cursor: InboxCursor | null,
  answers: Answers,
): Promise<HttpAnswer> {
  const [inbox, recordedSeq] = [cursor?.inbox ?? null, cursor?.seq ?? 0];
  const request: TakeRequest = { inbox, recordedSeq, syncedSeq, ...answers };
  const body = JSON.stringify(request);
  const timeoutMs = takeWaitMs + answerMarginMs;
  const post = { method: "POST", body, timeoutMs, signal };
  return await withShortPath(socketPath, (shortPath) =>
    sendHttp({ socketPath: shortPath, path: "/take" }, post, longestResponseBytes),
  );
}

function read(state: TakingState, { status, body }: HttpAnswer): ReadOffers {
  const offers = status === 200 ? readOffers(body, state.cursor?.seq ?? 0) : null;
  if (offers === null)
    throw new Error(`It answered with status ${status} and something that is no list of pushes.`);
  if (state.report.failure !== null && state.mayLog("inbox.reached"))
    state.log.info({ event: "inbox.reached" }, "The inbox is reached again");
  state.report = { reachedAtMs: Date.now(), failure: null };
  return offers;
}

async function settle(state: TakingState, offers: ReadOffers): Promise<Answers> {
  if (offers.inbox !== state.cursor?.inbox) {
    startAgain(state, offers.inbox);
    return noAnswers;
  }
  for (const use of offers.secretUses) state.onSecretUse(use);
  const answers = await recordAll(state, offers);
  return { answers, dryRuns: await answerDryRuns(state, offers.dryRuns) };
}

/** Pushes wait meanwhile, so it takes a bounded time, and one that fails is one that is not answered. */
async function answerDryRuns(
  state: TakingState,
  offers: readonly OfferedDryRun[],
): Promise<Answers["dryRuns"]> {
  const late = offers.length === 0 ? null : pause(dryRunsMs, state.signal).then(() => null);
  const wouldOf = (offer: OfferedDryRun) => Promise.race([state.dryRun(offer).catch(() => null), late]);
  return await Promise.all(offers.map(async (offer) => ({ id: offer.id, would: await wouldOf(offer) })));
}

async function recordAll(
  state: TakingState,
  { inbox, pushes, refusedSeqs }: ReadOffers,
): Promise<Answers["answers"]> {
  const recorded = await Promise.all(
    pushes.map(async (offer) => ({
      seq: offer.seq,
      record: await state.record(offer, { inbox, seq: offer.seq }),
    })),
  );
  const last = Math.max(state.cursor?.seq ?? 0, pushes.at(-1)?.seq ?? 0, refusedSeqs.at(-1) ?? 0);
  const cursor = { inbox, seq: last };
  if (refusedSeqs.length > 0) {
    state.skip(cursor);
    const text = `${refusedSeqs.length} offers of the inbox were no pushes and are refused`;
    if (state.mayLog("inbox.refused"))
      state.log.error({ event: "inbox.refused", count: refusedSeqs.length }, text);
  }
  state.cursor = cursor;
  if (cursor.seq > state.syncedSeq) syncSoon(state);
  return recorded.flatMap(({ seq, record }) => (record === null ? [] : [{ seq, record }]));
}

/** Only the first failure of a row is logged, and the first success after it. */
function reportFailure(state: TakingState, error: unknown): void {
  if (state.signal.aborted) return;
  const { code, message } = error as NodeJS.ErrnoException;
  const wasFailing = state.report.failure !== null;
  state.report = { ...state.report, failure: code ?? message };
  if (wasFailing || !state.mayLog("inbox.unreachable")) return;
  const text = `Pushes cannot be taken from ${state.socketPath} (${code ?? message}). Trying again every second`;
  state.log.warn({ event: "inbox.unreachable" }, text);
}
