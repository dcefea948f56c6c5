import { printable } from "#platform/terminal";
import type { NotDeployed } from "./deployment.ts";
import { branchOf, shortCommit } from "./push.ts";

/** A check of a commit: a check run, a commit status, a job of a pipeline. */
export interface Check {
  /** What people know it by, the best first. Untrusted. */
  readonly names: readonly string[];
  /** One that is skipped, or may fail, keeps nothing from being deployed. */
  readonly state: "pending" | "succeeded" | "skipped" | "failed";
  /** Whether it stands for others that may follow: nobody names it. */
  readonly isGroup?: boolean;
}

/** What the git host says of the checks of a commit. */
export type ChecksReading =
  | { readonly kind: "checks"; readonly checks: readonly Check[] }
  /** `fault` is for a person, with what to do. The host is asked again after `waitMs` at the earliest. */
  | { readonly kind: "fault"; readonly fault: string; readonly waitMs: number };

/** DEPLOY_AFTER: every check of a commit, or those with these names. */
export type DeployAfter = "all" | readonly string[];

export interface ChecksOptions {
  /** As it is now; null: nothing is waited for. */
  readonly deployAfter: () => DeployAfter | null;
  /** Never rejects. */
  readonly read: (commit: string, branch: string, signal: AbortSignal) => Promise<ChecksReading>;
  /** How often the host is asked if no delivery comes. */
  readonly pollMs: () => number;
  /** A clock that never jumps, in milliseconds. */
  readonly clock?: () => number;
}

/** Decides whether a head may be deployed, by its checks at the git host. */
export interface Checks {
  /**
   * Asks the host once.
   *
   * @param sinceMs when the commit was first to be deployed, in milliseconds since 1970; null: only now
   * @returns null if nothing speaks against the commit
   */
  readonly judge: (
    ref: string,
    commit: string,
    signal: AbortSignal,
    sinceMs?: number | null,
  ) => Promise<Exclude<NotDeployed, { kind: "refused" }> | null>;
  /** The branches whose heads were waited for until the deadline. */
  readonly givenUp: () => readonly string[];
}

/** Whatever it is sent, the service asks the host no more often. */
const leastRestMs = 5_000;
/** If all checks count, those of another program may begin later than the first one ends. */
const settleMs = 10_000;
/** A head that waited for so long is skipped. A restart gives it no more time. */
const deadlineMs = 3_600_000;

/**
 * Makes what decides by checks. A head waits until all that DEPLOY_AFTER names have succeeded, an hour at most; one that failed may
 * be run again in that time. After the hour, a delivery or catch-up can still find it green.
 */
export function createChecks(options: ChecksOptions): Checks {
  const { deployAfter, read, pollMs, clock = () => performance.now() } = options;
  /** The head of each branch that waits, or has waited, and since when. */
  const waits = new Map<string, { readonly commit: string; readonly sinceMs: number }>();

  function waitedMs(ref: string, commit: string): number {
    const wait = waits.get(ref);
    return wait?.commit === commit ? clock() - wait.sinceMs : 0;
  }

  const hasGivenUp = (ref: string, commit: string) => waitedMs(ref, commit) >= deadlineMs;

  return {
    async judge(ref, commit, signal, sinceMs) {
      const after = deployAfter();
      if (after === null) return null;
      const nowMs = Date.now();
      const ageMs = Math.max(0, nowMs - (sinceMs ?? nowMs));
      if (waits.get(ref)?.commit !== commit) waits.set(ref, { commit, sinceMs: clock() - ageMs });
      const branch = branchOf(ref);
      const reading = await read(commit, branch, signal);
      const isSettled = after !== "all" || waitedMs(ref, commit) >= Math.min(settleMs, pollMs());
      const reason = whyNot(reading, after, shortCommit(commit)) ?? (isSettled ? null : settling);
      if (reason === null) {
        waits.delete(ref);
        return null;
      }
      if (hasGivenUp(ref, commit))
        return {
          kind: "skipped",
          reason: `${reason} It has waited for an hour. It is deployed if its checks succeed while it is the head of ${branch}. To deploy it now: hotpush deploy ${branch}`,
        };
      const waitMs = reading.kind === "fault" ? reading.waitMs : 0;
      const mostMs = Math.max(reason === settling ? Math.min(settleMs, pollMs()) : pollMs(), waitMs);
      return {
        kind: "wait",
        reason,
        rest: { leastMs: Math.min(Math.max(leastRestMs, waitMs), mostMs), mostMs },
      };
    },
    givenUp: () => [...waits].filter(([ref, { commit }]) => hasGivenUp(ref, commit)).map(([ref]) => ref),
  };
}

const settling = "Its checks have succeeded. The host is asked once more, because others may begin late.";

/** Why a commit must not be deployed yet, or null. */
function whyNot(reading: ChecksReading, after: DeployAfter, commit: string): string | null {
  if (reading.kind === "fault") return `The checks of ${commit} are not known: ${reading.fault}`;
  // Hotpush's own are none, also those of other projects: they would wait for each other.
  const checks = reading.checks.filter(({ names }) => !names.some((name) => name.startsWith("hotpush/")));
  const known = checks.filter(({ isGroup }) => !isGroup);
  const wanted =
    after === "all" ? checks : known.filter(({ names }) => names.some((name) => after.includes(name)));
  const missing =
    after === "all" ? [] : after.filter((name) => !known.some(({ names }) => names.includes(name)));
  // A host skips also what comes after a failure.
  const isSkippedBad = after !== "all" && checks.some(({ state }) => state === "failed");
  const failed = wanted.filter(({ state }) => state === "failed" || (state === "skipped" && isSkippedBad));
  if (failed.length > 0)
    return `Of the checks of ${commit}, these have not succeeded: ${listed(failed)}. Run them again, or push a commit that corrects it.`;
  if (missing.length > 0)
    return `${commit} has no check that is named ${quoted(missing)}. It has ${known.length === 0 ? "none yet" : listed(known)}. If the name is wrong, correct DEPLOY_AFTER.`;
  if (wanted.length === 0) return `No check of ${commit} has begun.`;
  const pending = wanted.filter(({ state }) => state === "pending");
  return pending.length > 0 ? `The checks of ${commit} have not ended: ${listed(pending)}.` : null;
}

const mostListed = 8;
const longestName = 60;

function listed(checks: readonly Check[]): string {
  return quoted([...new Set(checks.map(({ names }) => names[0] ?? ""))]);
}

function quoted(names: readonly string[]): string {
  const shown = names.slice(0, mostListed).map((name) => printable(name, longestName));
  return shown.join(", ") + (names.length > mostListed ? ` and ${names.length - mostListed} more` : "");
}
