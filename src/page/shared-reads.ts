import type { RunAnswer, RunClient, Visit } from "./run-client.ts";

/**
 * Answers of `run` that all visitors share. Only for visitors whose right to read `run` has just confirmed, and for what does
 * not depend on who asks.
 */
export interface SharedReads {
  readonly read: (visit: Visit, path: string) => Promise<RunAnswer>;
  /** After something was done, which must be seen at once. */
  readonly forget: () => void;
}

/** Pages that are open at the same time ask for the same within a moment, again and again. */
const freshMs = 1_000;
const mostAnswers = 200;

export function createSharedReads(run: RunClient, now: () => number = Date.now): SharedReads {
  const answers = new Map<string, { readonly atMs: number; readonly answer: Promise<RunAnswer> }>();

  function forgetOld(): void {
    for (const [path, { atMs }] of answers)
      if (now() - atMs >= freshMs || answers.size > mostAnswers) answers.delete(path);
  }

  return {
    read(visit, path) {
      forgetOld();
      const known = answers.get(path);
      if (known !== undefined) return known.answer;
      const answer = run.call(visit, "GET", path);
      answers.set(path, { atMs: now(), answer });
      // A refusal may be about this visitor.
      const drop = () => answers.delete(path);
      answer.then(({ kind }) => kind === "refused" && drop(), drop);
      return answer;
    },
    forget: () => answers.clear(),
  };
}
