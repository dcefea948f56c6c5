import type { Answers, SiteRequests } from "../../site-requests.ts";

/** How a request ended, by Caddy's line about it. */
export type Outcome =
  /** The app answered, with 5xx too: `isServerError`. */
  | { readonly kind: "answered"; readonly isServerError: boolean }
  /** The app did not answer: Caddy did. */
  | { readonly kind: "failed" }
  /** The answer broke off, or the client left in its middle. */
  | { readonly kind: "cut off" }
  /** The client left before the answer. */
  | { readonly kind: "left" };

/** A request in Caddy's log. */
export interface LoggedRequest {
  /** In small letters, without a port. */
  readonly host: string;
  /** The host that Caddy tried last, such as the name of a container; null if that is not known. */
  readonly container: string | null;
  /** When Caddy got it, in milliseconds since 1970; 0 if its log does not say. */
  readonly sentMs: number;
  readonly outcome: Outcome;
}

/** What Caddy writes about a request. It appends the last two fields when its handlers are done, so not to one that was cut off. */
interface Line {
  /** The end of the request, in seconds since 1970, unless the log has another format for it. */
  readonly ts?: unknown;
  /** In seconds. */
  readonly duration?: unknown;
  readonly status?: number;
  readonly request?: { readonly host?: string };
  readonly upstream?: string | null;
  readonly answered?: number | string | null;
}

/** Reads a line of Caddy's log; null if it is not about a request. */
export function readLoggedRequest(text: string): LoggedRequest | null {
  const line = parseLine(text);
  const { status, request, upstream } = line;
  if (status === undefined || request?.host === undefined) return null;
  const container = upstream ? upstream.replace(/:\d+$/, "") : null;
  const sentMs = 1_000 * (Number(line.ts) - Number(line.duration));
  return {
    host: hostOf(request.host),
    container,
    sentMs: Number.isFinite(sentMs) ? sentMs : 0,
    outcome: outcomeOf(line, status),
  };
}

function parseLine(text: string): Line {
  try {
    return JSON.parse(text) as Line;
  } catch {
    return {};
  }
}

/** The host of a `Host` header, without its port, as both Caddy's log and people compare them. */
export function hostOf(header: string): string {
  return header.replace(/:[^:\]]*$/, "").toLowerCase();
}

function outcomeOf(line: Line, status: number): Outcome {
  if (!("answered" in line)) return { kind: "cut off" };
  // Caddy before 2.12 logs 0 for a client that has left, later ones 499.
  if (status === 0 || status === 499) return { kind: "left" };
  const hasAnswered = Number(line.answered) === status;
  if (status >= 500) return hasAnswered ? { kind: "answered", isServerError: true } : { kind: "failed" };
  // A second reverse_proxy took over, and its answer broke off before the fields were renewed.
  if (status < 400 && line.upstream && !line.answered) return { kind: "cut off" };
  return { kind: "answered", isServerError: false };
}

/** The requests to some containers, and those of them that got 5xx, or that the containers did not answer. */
export interface Answered {
  readonly requests: number;
  readonly bad: number;
}

/** What a guard asks of the requests so far. */
export interface RequestCount {
  /** Those to the containers of these names. */
  readonly to: (containers: readonly string[]) => Answered;
  /**
   * How many were cut off of those that began since then, in milliseconds since 1970; of all without it. Caddy does not log by
   * which container, or whether by the client.
   */
  readonly cutOff: (sinceMs?: number) => number;
}

/** The requests so far. */
export interface Tally extends RequestCount {
  readonly add: (request: LoggedRequest) => void;
  /** @param leftInTheMiddle how many of the cut off requests of a host were cut off by the client */
  readonly sites: (leftInTheMiddle: (host: string) => number) => readonly SiteRequests[];
}

interface Site {
  requests: number;
  failed: number;
  cutOff: number;
  left: number;
  readonly before: Mutable<Answers>;
  readonly after: Mutable<Answers>;
}

type Mutable<Type> = { -readonly [Key in keyof Type]: Type[Key] };

/** Anybody may send any Host to a site without a name. */
const mostHosts = 20;
const otherHosts = "other hosts";

/** Makes a tally of requests by host. `isNew` says whether a container was started by the roll-out. */
export function createTally(isNew: (container: string) => boolean): Tally {
  const sites = new Map<string, Site>();
  const containers = new Map<string, Mutable<Answered>>();
  const cutOffMs: number[] = [];

  function addTo(container: string, outcome: Outcome): void {
    if (outcome.kind !== "answered" && outcome.kind !== "failed") return;
    const answered = containers.get(container) ?? { requests: 0, bad: 0 };
    containers.set(container, answered);
    answered.requests += 1;
    if (outcome.kind === "failed" || outcome.isServerError) answered.bad += 1;
  }

  function siteOf(host: string): Site {
    const name = sites.has(host) || sites.size < mostHosts ? host : otherHosts;
    const site = sites.get(name) ?? newSite();
    sites.set(name, site);
    return site;
  }

  return {
    to(names) {
      const answered = names.flatMap((name) => containers.get(name) ?? []);
      const sum = (of: (one: Answered) => number) => answered.reduce((total, one) => total + of(one), 0);
      return { requests: sum(({ requests }) => requests), bad: sum(({ bad }) => bad) };
    },
    add({ host, container, sentMs, outcome }) {
      const site = siteOf(host);
      site.requests += 1;
      if (outcome.kind === "failed") site.failed += 1;
      if (outcome.kind === "cut off") site.cutOff += 1;
      if (outcome.kind === "cut off") cutOffMs.push(sentMs);
      if (outcome.kind === "left") site.left += 1;
      if (container !== null) addTo(container, outcome);
      if (outcome.kind !== "answered" || container === null) return;
      const answers = isNew(container) ? site.after : site.before;
      answers.answers += 1;
      if (outcome.isServerError) answers.serverErrors += 1;
    },
    sites: (leftInTheMiddle) =>
      [...sites].map(([host, site]) => summary(host, site, Math.min(site.cutOff, leftInTheMiddle(host)))),
    cutOff: (sinceMs = 0) => cutOffMs.filter((sentMs) => sentMs >= sinceMs).length,
  };
}

function newSite(): Site {
  const none = () => ({ answers: 0, serverErrors: 0 });
  return { requests: 0, failed: 0, cutOff: 0, left: 0, before: none(), after: none() };
}

function summary(host: string, site: Site, leftInTheMiddle: number): SiteRequests {
  const { requests, failed, cutOff, left, before, after } = site;
  const brokeOff = cutOff - leftInTheMiddle;
  const total = { requests, failed: failed + brokeOff, brokeOff, left: left + leftInTheMiddle };
  return { host, ...total, before, after };
}
