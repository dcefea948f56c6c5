import { setTimeout as sleep } from "node:timers/promises";
import { type Check, judge, type Result, warning } from "./check.ts";
import { checks } from "./checks.ts";
import type { Scene } from "./scene.ts";

/** A check and what it gave. */
export interface Examined {
  readonly check: Check;
  readonly result: Result;
}

/** Longer than any program and any request that a check waits for. */
const longestMs = 15_000;

/** Looks at everything at once. A check that fails itself is a warning: it says nothing of what it looks at. */
export function examine(scene: Scene, chosen: readonly Check[] = checks): Promise<readonly Examined[]> {
  return Promise.all(chosen.map(async (check) => ({ check, result: await lookWithin(check, scene) })));
}

async function lookWithin(check: Check, scene: Scene): Promise<Result> {
  const ending = new AbortController();
  const late = sleep(longestMs, null, { signal: ending.signal, ref: true }).catch(() => null);
  try {
    const result = await Promise.race([Promise.resolve(scene).then(check.look), late]);
    if (result !== null) return result;
    return judge(
      [warning(`It could not be found out within ${longestMs / 1_000} s whether ${check.subject}.`)],
      "",
    );
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return judge([warning(`It could not be found out whether ${check.subject}: ${reason}`)], "");
  } finally {
    ending.abort();
  }
}

/** How many faults there are, and how many checks without. */
export interface Counts {
  readonly problems: number;
  readonly warnings: number;
  readonly passed: number;
  readonly skipped: number;
}

/** Counts the faults by severity, and the checks that have none. */
export function count(examined: readonly Examined[]): Counts {
  const faults = examined.flatMap(({ result }) => (result.outcome === "faulty" ? result.faults : []));
  const withOutcome = (outcome: Result["outcome"]) =>
    examined.filter(({ result }) => result.outcome === outcome).length;
  return {
    problems: faults.filter(({ severity }) => severity === "problem").length,
    warnings: faults.filter(({ severity }) => severity === "warning").length,
    passed: withOutcome("ok"),
    skipped: withOutcome("skipped"),
  };
}
