import type { Answered } from "../requests/tally.ts";

/** How a new version does, by the requests to it and to the one before. */
export type GuardVerdict =
  | { readonly kind: "worse"; readonly text: string }
  | { readonly kind: "good"; readonly text: string }
  | { readonly kind: "too few"; readonly text: string };

/** A share is not believed before. */
export const leastRequests = 50;
/** A new version may go wrong so much more often, as a share of its requests. */
const margin = 0.02;
/** Chance alone explains a share that is so many standard deviations higher about once in a thousand judgements. */
const deviations = 3;

/**
 * Judges whether the new version goes wrong more often than the one before: by more than two percentage points, and by more
 * than chance explains.
 */
export function judge(now: Answered, before: Answered): GuardVerdict {
  const text = `${countText(now)}, before ${countText(before)}`;
  if (now.requests < leastRequests)
    return { kind: "too few", text: `too few requests to judge by, ${leastRequests} are needed: ${text}` };
  return { kind: isWorse(now, before) ? "worse" : "good", text };
}

function isWorse(now: Answered, before: Answered): boolean {
  const tolerated = Math.min(1, shareOf(before) + margin);
  const chance = deviations * Math.sqrt((tolerated * (1 - tolerated)) / now.requests);
  return shareOf(now) > tolerated + chance;
}

function shareOf({ requests, bad }: Answered): number {
  return requests === 0 ? 0 : bad / requests;
}

function countText(answered: Answered): string {
  const { requests, bad } = answered;
  const share = requests === 0 ? "" : ` (${Number((100 * shareOf(answered)).toFixed(1))} %)`;
  return `${bad.toLocaleString("en-US")} of ${requests.toLocaleString("en-US")} requests went wrong${share}`;
}
