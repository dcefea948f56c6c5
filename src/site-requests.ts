import * as v from "valibot";

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
/** What containers answered, and how much of it with 5xx. */
const answers = v.strictObject({ answers: count, serverErrors: count });
export const siteRequests = v.strictObject({
  host: v.pipe(v.string(), v.maxLength(253), v.regex(/^[\x21-\x7e ]+$/)),
  requests: count,
  /** Those that got no answer of the app: Caddy answered that it has none. */
  failed: count,
  /** Those whose answer broke off in its middle: the app or the client ended it, and Caddy's log does not say which. */
  brokeOff: count,
  /** Clients that left before their answer. Their requests did not fail. */
  left: count,
  /** What the containers answered that ran before the roll-out, and what the new ones did. */
  before: answers,
  after: answers,
});

export type Answers = Readonly<v.InferOutput<typeof answers>>;

/** The requests to one host name that went through the proxy while a roll-out lasted, by Caddy's own log of them. */
export type SiteRequests = Readonly<v.InferOutput<typeof siteRequests>>;

/** Describes the requests to one host for a person, in one line. */
export function requestsText(site: SiteRequests): string {
  const { host, requests, failed, brokeOff, left } = site;
  const inTheMiddle = brokeOff === 0 ? "" : `; ${number(brokeOff)} broke off in the middle of the answer`;
  const leaving = left === 0 ? "" : `; ${number(left)} clients left early`;
  return `${host}: ${number(requests)} requests, ${number(failed)} failed${inTheMiddle}; ${errorsText(site)}${leaving}`;
}

function errorsText({ before, after }: SiteRequests): string {
  const count = before.serverErrors + after.serverErrors;
  if (count === 0) return "the app answered none with 5xx";
  const shares = [after, before].filter(({ answers }) => answers > 0).map(share);
  return `the app answered ${number(count)} with 5xx (${shares.join(", before ")})`;
}

/** The requests to all hosts together: `0 of 12,431`. */
export function failedText(sites: readonly SiteRequests[]): string {
  const sum = (of: (site: SiteRequests) => number) => sites.reduce((total, site) => total + of(site), 0);
  return `${number(sum(({ failed }) => failed))} of ${number(sum(({ requests }) => requests))}`;
}

/** The share of answers with 5xx: `0.02 %`. */
export function share({ answers, serverErrors }: Answers): string {
  const percent = (100 * serverErrors) / answers;
  if (percent > 0 && percent < 0.01) return "under 0.01 %";
  return `${Number(percent.toFixed(2))} %`;
}

function number(count: number): string {
  return count.toLocaleString("en-US");
}

const sites = v.pipe(v.array(siteRequests), v.maxLength(50));

/** The value as the requests to some hosts, or null if it is something else: a deploy script may have written it. */
export function readSiteRequests(value: unknown): readonly SiteRequests[] | null {
  const { success, output } = v.safeParse(sites, value);
  return success ? output : null;
}
