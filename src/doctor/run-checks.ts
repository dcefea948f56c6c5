import { setTimeout as sleep } from "node:timers/promises";
import { type Check, type ProbeResult, resultOf, warning } from "./check.ts";
import { checks } from "./checks.ts";
import type { DoctorContext } from "./context.ts";

/** A check and what it found. */
export interface CheckReport {
  readonly check: Check;
  readonly result: ProbeResult;
}

/** Longer than any program and any request that a check waits for. */
const longestMs = 15_000;

/** Runs the checks at the same time. A check that itself fails gives a warning, and the others go on. */
export function runChecks(
  context: DoctorContext,
  chosen: readonly Check[] = checks,
): Promise<readonly CheckReport[]> {
  return Promise.all(chosen.map(async (check) => ({ check, result: await runCheck(check, context) })));
}

async function runCheck({ probe }: Check, context: DoctorContext): Promise<ProbeResult> {
  const ending = new AbortController();
  const late = sleep(longestMs, null, { signal: ending.signal, ref: true }).catch(() => null);
  try {
    const found = await Promise.race([Promise.resolve(context).then(probe), late]);
    return resultOf(found ?? warning(`Check timed out after ${longestMs / 1_000} s.`));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return resultOf(warning(`Check failed: ${reason}`));
  } finally {
    ending.abort();
  }
}

/** How many faults of each severity there are, and how many checks without one. */
export interface ResultCounts {
  readonly problems: number;
  readonly warnings: number;
  readonly passed: number;
  readonly skipped: number;
}

/** Counts the faults by severity, and the checks that have none. */
export function countResults(reports: readonly CheckReport[]): ResultCounts {
  const faults = reports.flatMap(({ result }) => (result.outcome === "faulty" ? result.faults : []));
  const withOutcome = (outcome: ProbeResult["outcome"]) =>
    reports.filter(({ result }) => result.outcome === outcome).length;
  return {
    problems: faults.filter(({ severity }) => severity === "problem").length,
    warnings: faults.filter(({ severity }) => severity === "warning").length,
    passed: withOutcome("ok"),
    skipped: withOutcome("skipped"),
  };
}
