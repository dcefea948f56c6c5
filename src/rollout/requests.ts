import { readFileSync } from "node:fs";
import { type FileHandle, open, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, posix } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as v from "valibot";
import { liveMount } from "#config/server";
import { formatDuration } from "#config/values";
import { untilRight } from "#platform/async";
import { hostOf, namesOf } from "#platform/docker/containers";
import { ProblemError } from "#problems";
import { type SiteRequests, siteRequests } from "#site-requests";
import type {
  Answered,
  Containers,
  LoggedRequest,
  RequestCount,
  Rollout,
  RunningContainers,
  ServiceRollout,
} from "./context.ts";
import { note, timed } from "./report.ts";
import { requireStillServing } from "./service-containers.ts";
import { askCaddy, ownHostOf, requestsInFlight } from "./switch-traffic.ts";

type Counted = Pick<Rollout, "project" | "containers" | "liveDirectory" | "liveFilesRead" | "report">;

/** The guard sees what went wrong this much later. */
const pollMs = 100;
/** Caddy writes the line when the client has its answer already. */
const settleMs = 200;

/**
 * Does `work` while the requests that go through the proxy are counted, gives it the count so far, and reports their
 * number, whether it succeeds or not. Without the lines in the Caddyfile that this needs, it reports those lines. Nothing
 * that goes wrong with the count changes the roll-out.
 */
export async function withRequestsCounted<Result>(
  rollout: Counted,
  running: RunningContainers,
  work: (requestCount: RequestCount | null) => Promise<Result>,
): Promise<Result> {
  const noteFault = (error: unknown) => {
    const reason = error instanceof Error ? error.message : error;
    note(rollout, `the requests cannot be counted: ${reason}`);
    return null;
  };
  const counting = await startCounting(rollout, running).catch(noteFault);
  try {
    return await work(counting?.count ?? null);
  } finally {
    await counting?.end().catch(noteFault);
  }
}

/** @returns the count, null if Caddy does not log requests, and what ends and reports it; null without a proxy */
async function startCounting(rollout: Counted, running: RunningContainers) {
  const { project, containers, liveDirectory: live, liveFilesRead, report } = rollout;
  if (live === null || liveFilesRead === null || liveFilesRead.size === 0) return null;
  // Under whatever path Caddy sees the live files.
  const isLogged = (await askCaddy(live, "/config/"))?.includes(`${requestsLog("/", live.project)}"`);
  if (!isLogged) {
    // On a server, `init` and `upgrade` write them.
    const missingLines = live.project === null ? countingLines : [];
    return { count: null, end: async () => report({ event: "requests", sites: null, missingLines }) };
  }
  const others = containers.filter(({ service }) => !running.has(service));
  const old = new Set([...others, ...[...running.values()].flat()].map(hostOf));
  // With COMPOSE_COMPATIBILITY, containers are called `shop_web_2`.
  const isOfProject = (host: string) =>
    ["-", "_"].some((mark) => host.startsWith(project.name + mark)) || /^[0-9a-f]{12}$/.test(host);
  const tally = createTally((host) => isOfProject(host) && !old.has(host));
  const log = await followLog(
    requestsLog(live.project === null ? live.path : dirname(live.path), live.project),
  );
  const readLog = async () => {
    for (const line of await log.read()) tally.add(line);
  };
  // Caddy logs requests as long as this file is there.
  const switchPath = join(live.path, countingFile);
  await writeFile(switchPath, "", { mode: 0o644 });
  const over = new AbortController();
  const poll = async () => {
    while (!over.signal.aborted) {
      await readLog();
      await sleep(pollMs, undefined, { signal: over.signal }).catch(() => {});
    }
  };
  const polling = poll();
  polling.catch(() => {}); // `end` reports it.
  const end = async () => {
    await rm(switchPath, { force: true });
    over.abort();
    await polling;
    await sleep(settleMs);
    await readLog();
    await log.close();
    // A log that shows none of our own requests says nothing of others.
    if (!tally.isBlind()) report({ event: "requests", sites: tally.sites(), missingLines: [] });
  };
  return { count: tally, end };
}

const pieceBytes = 256 * 1024;

/**
 * Follows the log at `path` from its present end, also when its writer moves it aside and starts a new one. A log that is
 * not there yet is read from its beginning.
 */
export async function followLog(path: string) {
  let file = await openIfThere(path);
  let position = file === null ? 0 : (await file.stat()).size;
  let rest: Buffer = Buffer.alloc(0);

  async function readToEnd(): Promise<void> {
    for (;;) {
      const piece = await file?.read(Buffer.alloc(pieceBytes), 0, pieceBytes, position);
      if (!piece?.bytesRead) return;
      rest = Buffer.concat([rest, piece.buffer.subarray(0, piece.bytesRead)]);
      position += piece.bytesRead;
    }
  }

  /** @returns the whole lines since the last call */
  async function read(): Promise<readonly string[]> {
    file ??= await openIfThere(path);
    await readToEnd();
    const present = await stat(path).catch(() => null);
    if (file !== null && present !== null && present.ino !== (await file.stat()).ino) {
      await readToEnd(); // What was written between the two looks.
      await file.close();
      file = await openIfThere(path);
      position = 0;
      await readToEnd();
    }
    const end = rest.lastIndexOf("\n") + 1;
    const text = rest.toString("utf8", 0, end);
    rest = rest.subarray(end);
    return text.split("\n").slice(0, -1);
  }

  return { read, close: async () => file?.close() };
}

function openIfThere(path: string): Promise<FileHandle | null> {
  return open(path, "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
}

/** Caddy logs requests as long as this file is in the directory of the live files. */
export const countingFile = ".counting";
/** On the server, the logs of all projects. Caddy writes them as root, so no project may put a link here. */
export const requestsDirectory = ".requests";

/**
 * Caddy's log of the requests.
 *
 * @param livePath the directory of the live files, on the server that of all projects
 * @param project on the server
 */
export function requestsLog(livePath: string, project: string | null): string {
  return project === null
    ? posix.join(livePath, ".requests.log")
    : posix.join(livePath, requestsDirectory, `${project}.log`);
}

/** What would identify a person, and is not needed to count. */
const leftOut = [
  "request>headers",
  "request>uri",
  "request>remote_ip",
  "request>remote_port",
  "request>client_ip",
  "request>tls",
  "resp_headers",
  "user_id",
];

/** The lines that log which container answered, and how; also where a second reverse_proxy takes over a request. */
export const answerLines: readonly string[] = [
  "log_append upstream {rp.upstream.hostport}",
  "log_append answered {rp.status_code}",
];

/**
 * The lines of a site in a Caddyfile by which Caddy logs its requests, without what identifies a person, while a roll-out
 * counts them. The server's Caddyfile has the same for each project.
 */
export const countingLines: readonly string[] = [
  "log {",
  `\toutput file ${requestsLog(liveMount, null)} {`,
  "\t\tmode 0644",
  "\t\troll_size 10MiB",
  "\t\troll_keep 1",
  "\t\troll_uncompressed",
  "\t}",
  "\tformat filter {",
  ...leftOut.map((field) => `\t\t${field} delete`),
  "\t}",
  "}",
  "@uncounted not file {",
  `\troot ${liveMount}`,
  `\ttry_files ${countingFile}`,
  "}",
  "log_skip @uncounted",
  ...answerLines,
];

/** What Caddy writes about a request. It appends the last two fields when its handlers are done, so not if the answer broke off. */
interface Line {
  readonly status?: number;
  /** In seconds. */
  readonly duration?: number;
  readonly request?: { readonly host?: string };
  readonly upstream?: string | null;
  readonly answered?: number | string | null;
}

/** Reads a line of Caddy's log; null if it is not about a request. */
export function readLoggedRequest(text: string): LoggedRequest | null {
  let line: Line;
  try {
    line = JSON.parse(text) as Line;
  } catch {
    return null;
  }
  const { status, request, upstream, duration = 0 } = line;
  if (status === undefined || request?.host === undefined) return null;
  return {
    authority: request.host,
    host: request.host.replace(/:[^:\]]*$/, "").toLowerCase(),
    container: upstream ? upstream.replace(/:\d+$/, "") : null,
    outcome: requestOutcome(line, status),
    durationMs: 1_000 * duration,
  };
}

function requestOutcome(line: Line, status: number): LoggedRequest["outcome"] {
  if (!("answered" in line)) return "broke off";
  // Caddy before 2.12 logs 0 for a client that has left, later ones 499.
  if (status === 0 || status === 499) return "left";
  if (status >= 500) return Number(line.answered) === status ? "server error" : "failed";
  // A second reverse_proxy took over, and its answer broke off before the fields were renewed.
  return status < 400 && line.upstream && !line.answered ? "broke off" : "answered";
}

const noSite = () => ({
  requests: 0,
  failed: 0,
  brokeOff: 0,
  left: 0,
  before: { answers: 0, serverErrors: 0 },
  after: { answers: 0, serverErrors: 0 },
});

/** Anybody may send any Host to a site without a name. */
const mostHosts = 20;
const otherHosts = "other hosts";

/** Of each container, so that an old version is judged by what it did lately, and a new one not by its first answers. */
const mostAnswers = 200;
const newest = (values: readonly number[]) => values.slice(-mostAnswers);
/** A request of ours that isn't in the log by then never will be. */
const loggedWithinMs = 3_000;

/** Makes a tally of requests by host. `isNew` says whether a container was started by the roll-out. */
export function createTally(isNew: (container: string) => boolean) {
  let hasMissed = false;
  let hasRead = false;
  const sites = new Map<string, ReturnType<typeof noSite>>();
  const containers = new Map<string, { -readonly [Key in keyof Answered]: Answered[Key] }>();
  const own = new Map<string, LoggedRequest | null>();

  return {
    /** See `RequestCount`. */
    to(hosts: readonly string[]): Answered {
      const answered = hosts.flatMap((host) => containers.get(host) ?? []);
      const sum = (of: (one: Answered) => number) => answered.reduce((total, one) => total + of(one), 0);
      return {
        requests: sum(({ requests }) => requests),
        bad: sum(({ bad }) => bad),
        durationsMs: answered.flatMap(({ durationsMs }) => durationsMs),
        answeredAtMs: answered.flatMap(({ answeredAtMs }) => answeredAtMs),
      };
    },
    /** See `RequestCount`. */
    leaveOut(host: string) {
      own.set(host, null);
      return async () => {
        const isMissing = async () => (own.get(host) ? null : host);
        hasMissed ||= (await untilRight(isMissing, { withinMs: loggedWithinMs, pauseMs: pollMs })) !== null;
        return own.get(host) ?? null;
      };
    },
    isBlind: () => hasMissed && !hasRead,
    /** @param line of Caddy's log */
    add(line: string) {
      const request = readLoggedRequest(line);
      if (request === null) return;
      hasRead = true;
      const { authority, host, container, outcome, durationMs } = request;
      if (own.has(authority)) {
        own.set(authority, request);
        return;
      }
      const isNamed = v.is(siteRequests.entries.host, host);
      const name = isNamed && (sites.has(host) || sites.size < mostHosts) ? host : otherHosts;
      const site = sites.get(name) ?? noSite();
      sites.set(name, site);
      site.requests += 1;
      if (outcome === "failed") site.failed += 1;
      if (outcome === "left") site.left += 1;
      if (outcome === "broke off") site.brokeOff += 1;
      if (container === null || outcome === "broke off" || outcome === "left") return;
      const answered = containers.get(container) ?? {
        requests: 0,
        bad: 0,
        durationsMs: [],
        answeredAtMs: [],
      };
      containers.set(container, answered);
      answered.requests += 1;
      if (outcome !== "answered") answered.bad += 1;
      if (outcome === "failed") return;
      answered.durationsMs = newest([...answered.durationsMs, durationMs]);
      answered.answeredAtMs = newest([...answered.answeredAtMs, performance.now()]);
      const answers = isNew(container) ? site.after : site.before;
      answers.answers += 1;
      if (outcome === "server error") answers.serverErrors += 1;
    },
    sites: (): readonly SiteRequests[] => [...sites].map(([host, site]) => ({ host, ...site })),
  };
}

/** After this share of its time, the guard ends as soon as the requests it needs would not come at either version's pace. */
const earlyShare = 0.2;
/** Docker is asked less often than the count. */
const looksPerInspection = 5;

/**
 * Watches the new containers for a while after the traffic has moved to them: the share of requests that go wrong, their restarts and
 * their health. The old ones still run, so that the caller can go back at once. There is no guard without a count of
 * requests, without an old version, and in a roll back.
 *
 * @param switchedAtMs when the old version lost its requests, by `performance.now`
 * @param over ends the guard if the traffic goes back for another reason
 * @throws ProblemError `version_worse` or `container_not_healthy` if the new version must go, or the signal's reason if the
 * roll-out is asked to stop
 */
export async function guardNewVersion(
  on: ServiceRollout,
  old: Containers,
  fresh: Containers,
  switchedAtMs: number,
  over: AbortSignal,
): Promise<void> {
  const { service, directedBy, requestCount: count, report, signal, env } = on;
  if (directedBy === null || count === null || service.guardMs === 0) return;
  if (old.length === 0 || on.version !== null) return;
  report({ event: "guarding", service: service.name, guardMs: service.guardMs });
  // Caddy logs requests of the old version under these names, and until the first roll-out under the service's own.
  const ownHost = ownHostOf(directedBy, service.name);
  const freshHosts = fresh.map(hostOf);
  const now = () => count.to(freshHosts);
  // Caddy sends requests to the service's own host if it does not reach the new containers.
  const missed = () => now().bad + count.to([ownHost]).requests;
  const before = () => count.to([ownHost, ...old.map(hostOf)]);
  /** @returns the verdict on a version that may stay */
  const watch = async (): Promise<string> => {
    const startedMs = performance.now();
    const elapsedMs = () => performance.now() - startedMs;
    const goBackIfWorse = ({ kind, text }: GuardVerdict) => {
      if (kind !== "worse") return;
      const detail = `The new version of ${service.name} (${namesOf(fresh)}) is worse than the one before: ${text}. Its requests went back to the old version ${formatDuration(elapsedMs())} after the guard began.`;
      throw new ProblemError({ code: "version_worse", detail });
    };
    const { requests: atStart } = now();
    const missedAtStart = missed();
    let waiting: readonly number[] = [];
    const judgeAnswers = () => {
      const answers = now().answeredAtMs.filter((ms) => ms > startedMs).length;
      const stuck = waiting.length < leastLooks ? 0 : Math.min(...waiting);
      const expected = expectedAnswers(before(), switchedAtMs, elapsedMs());
      return judgeSilence(answers, stuck + missed() - missedAtStart, expected);
    };
    let isEnded = false;
    for (let look = 1; elapsedMs() < service.guardMs && !isEnded; look += 1) {
      await sleep(pollMs);
      if (over.aborted) return "ended: the requests go back for another reason";
      const verdict = judge(now(), before());
      goBackIfWorse(verdict);
      if (look % looksPerInspection === 0) {
        await requireStillServing(on, fresh);
        waiting = [...waiting, (await requestsInFlight(directedBy, null, freshHosts)) ?? 0].slice(
          -leastLooks,
        );
        if (elapsedMs() >= silenceMs) goBackIfWorse(judgeAnswers());
      }
      signal.throwIfAborted();
      const order = readGuardOrder(env);
      if (order === "back") {
        const detail = `A roll back was requested while the new version of ${service.name} was guarded, so its requests went back to the old version: ${verdict.text}.`;
        throw new ProblemError({ code: "version_unwanted", detail });
      }
      isEnded = order === "end";
      const share = elapsedMs() / service.guardMs;
      const expected = atStart + (now().requests - atStart) / share;
      const isAwaited = expectedAnswers(before(), switchedAtMs, service.guardMs) >= leastExpected;
      if (share >= earlyShare && expected < leastRequests && !isAwaited && !count.isBlind()) break;
    }
    if (!isEnded) goBackIfWorse(judgeAnswers());
    const time = judgeTime(now(), before());
    goBackIfWorse(time);
    if (count.isBlind()) return blindText;
    const { text } = judge(now(), before());
    return `${isEnded ? "ended early: " : ""}${text}${time.kind === "too few" ? "" : `; ${time.text}`}`;
  };
  await timed(on, "guard", watch);
}

/** How a new version does, by the requests to it and to the one before. */
interface GuardVerdict {
  readonly kind: "worse" | "good" | "too few";
  readonly text: string;
}

/** A share is not believed before. */
const leastRequests = 50;
/** A new version may go wrong so much more often, as a share of its requests. */
const margin = 0.02;
/** Chance alone explains a share that is so many standard deviations higher about once in a thousand judgements. */
const deviations = 3;

/**
 * Judges whether the new version goes wrong more often than the one before: by more than two percentage points, and by more
 * than chance explains in the requests of both.
 */
export function judge(now: Answered, before: Answered): GuardVerdict {
  const { requests } = now;
  const text = `${countText(now)}, before ${countText(before)}`;
  const few = `too few requests to judge by, ${leastRequests} are needed: ${text}`;
  if (requests < leastRequests) return { kind: "too few", text: few };
  const tolerated = Math.min(1, shareOf(before) + margin);
  const both = 1 / requests + 1 / Math.max(1, before.requests);
  const chance = deviations * Math.sqrt(tolerated * (1 - tolerated) * both);
  return { kind: shareOf(now) > tolerated + chance ? "worse" : "good", text };
}

/** Said instead of a verdict. */
const blindText =
  "Caddy answered a request that its log does not show, so only restarts and health were watched. Does each site have the lines that count requests? If so, the log may have been deleted: restart Caddy in a quiet moment";

/** The old version's pace is that of its answers in this time before the switch, at most `mostAnswers` of each container. */
const paceMs = 10_000;
/** An app may be this slow at its start. A longer guard looks for silence from here on, a shorter one at its end. */
const silenceMs = 10_000;
/** With fewer expected answers, silence may be chance. */
const leastExpected = 10;
/** A version with a smaller share of the answers is silent, if at least as many requests have none. */
const silentShare = 0.2;
/** Requests wait if this many looks in a row, in two seconds, find some in flight. */
const leastLooks = 4;

/** Computes how many answers would come within `elapsedMs` at the pace that the old version had before the switch. */
export function expectedAnswers(before: Answered, switchedAtMs: number, elapsedMs: number): number {
  const isLate = (atMs = 0) => atMs > switchedAtMs - paceMs && atMs <= switchedAtMs;
  const lately = before.durationsMs.filter((_, index) => isLate(before.answeredAtMs[index]));
  return lately.reduce((sum, ms) => sum + Math.max(0, elapsedMs - ms), 0) / paceMs;
}

/** Judges whether the new version leaves its requests without an answer. If nobody asks, it does not. */
export function judgeSilence(answers: number, unanswered: number, expected: number): GuardVerdict {
  const text = `it gave ${answers} of about ${Math.round(expected)} expected answers, and left ${unanswered} requests without one`;
  const isSilent = answers < silentShare * expected && unanswered >= Math.max(1, answers);
  return { kind: isSilent && expected >= leastExpected ? "worse" : "good", text };
}

/** A new version is slow where it takes longer than this share of the old one's answers, and a margin. */
const percentile = 0.95;
const slowerBy = 1.2;
const slowerMs = 100;

/**
 * Judges whether the new version is slower: whether more than one in twenty of its newest answers took longer than the old one's
 * 95th percentile, a fifth more and 100 ms, and more than chance explains. Both versions need `leastRequests` answers.
 */
export function judgeTime(now: Answered, before: Answered): GuardVerdict {
  const requests = now.durationsMs.length;
  if (Math.min(requests, before.durationsMs.length) < leastRequests) return { kind: "too few", text: "" };
  const beforeMs = percentileOf(before.durationsMs);
  const within = `19 of 20 answers came within ${formatDuration(percentileOf(now.durationsMs))}`;
  const text = `${within}, before within ${formatDuration(beforeMs)}`;
  const limitMs = slowerBy * beforeMs + slowerMs;
  const slow = now.durationsMs.filter((ms) => ms > limitMs).length;
  const tolerated = 1 - percentile;
  const chance = deviations * Math.sqrt((tolerated * percentile) / requests);
  return { kind: slow / requests > tolerated + chance ? "worse" : "good", text };
}

function percentileOf(durationsMs: readonly number[]): number {
  const sorted = [...durationsMs].sort((a, b) => a - b);
  return Math.round(sorted[Math.ceil(percentile * sorted.length) - 1] ?? 0);
}

function shareOf({ requests, bad }: Answered): number {
  return requests === 0 ? 0 : bad / requests;
}

function countText(answered: Answered): string {
  const { requests, bad } = answered;
  const share = requests === 0 ? "" : ` (${Number((100 * shareOf(answered)).toFixed(1))} %)`;
  return `${bad.toLocaleString("en-US")} of ${requests.toLocaleString("en-US")} requests went wrong${share}`;
}

/** What the service has the roll-out of a deployment do while the new version is guarded: end the guard, or go back. */
type Order = "end" | "back";

/**
 * The order that the service has given, or null.
 *
 * @param env HOTPUSH_ORDERS and DEPLOY_ID; without them there is no such service
 */
function readGuardOrder({ HOTPUSH_ORDERS: path, DEPLOY_ID: id = "" }: NodeJS.ProcessEnv): Order | null {
  if (!path || !/^\d+$/.test(id)) return null;
  try {
    const text = readFileSync(join(path, id), "utf8");
    return text === "end" || text === "back" ? text : null;
  } catch {
    return null;
  }
}
