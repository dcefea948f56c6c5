import type { Push, PushRecord, Would } from "../receiver/push.ts";
import { mostOffered, type OfferedDryRun, type TakeRequest } from "./offer.ts";

/** The git hosts whose requests are open, until the other process has answered for them, or for half a second. */
export interface Senders {
  /** @returns null if the push was not recorded in time */
  readonly waitForRecord: (seq: number) => Promise<PushRecord | null>;
  /** @returns null if nobody has answered in time */
  readonly waitForDryRun: (project: string, push: Push) => Promise<Would | null>;
  /** The dry runs that were not taken yet. */
  readonly takeDryRuns: () => readonly OfferedDryRun[];
  readonly answer: (answers: Pick<TakeRequest, "answers" | "dryRuns">) => void;
}

/** How long the sender of a push waits for its record. Git hosts hang up after 10 s. */
const longestWaitMs = 500;
const mostDryRuns = 100;

/** @param onDryRun called when there is a dry run to take */
export function createSenders(onDryRun: () => void): Senders {
  const records = new Map<number, (record: PushRecord) => void>();
  const dryRuns = new Map<number, (would: Would | null) => void>();
  let untaken: OfferedDryRun[] = [];
  let lastDryRun = 0;

  return {
    async waitForRecord(seq) {
      const record = await inTime<PushRecord>((resolve) => records.set(seq, resolve));
      records.delete(seq);
      return record;
    },
    async waitForDryRun(project, push) {
      if (dryRuns.size >= mostDryRuns) return null;
      lastDryRun += 1;
      const id = lastDryRun;
      const would = await inTime<Would>((resolve) => {
        dryRuns.set(id, resolve);
        untaken.push({ id, project, push });
        onDryRun();
      });
      dryRuns.delete(id);
      untaken = untaken.filter((offer) => offer.id !== id);
      return would;
    },
    takeDryRuns: () => untaken.splice(0, mostOffered),
    answer({ answers, dryRuns: answered }) {
      for (const { seq, record } of answers) records.get(seq)?.(record);
      for (const { id, would } of answered) dryRuns.get(id)?.(would);
    },
  };
}

/** Resolves with what `wait` is answered with, or with null after the longest wait. */
function inTime<Answer>(wait: (resolve: (answer: Answer | null) => void) => void): Promise<Answer | null> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(null), longestWaitMs);
    wait((answer) => {
      clearTimeout(timer);
      resolve(answer);
    });
  });
}
