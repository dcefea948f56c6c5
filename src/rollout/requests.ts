import { type FileHandle, open, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { formatDuration } from "#config/duration";
import { serviceAlias } from "#config/server";
import { listContainers, namesOf } from "#platform/docker/container";
import { plainLog } from "#platform/docker/diagnosis";
import { type Engine, getJson } from "#platform/docker/engine";
import { ProblemError } from "#problems";
import type { Answers, SiteRequests } from "#site-requests";
import { countingFile, countingLines, requestsLog } from "./caddy-lines.ts";
import type {
  Answered,
  BrokenAnswer,
  Containers,
  LiveDirectory,
  RequestCount,
  Rollout,
  ServiceRollout,
} from "./context.ts";
import { readGuardOrder } from "./guard-order.ts";
import { hostDirectoryOf } from "./locate-project.ts";
import { note, timed } from "./report.ts";
import { isLiveFileOf, logsRequests } from "./switch-traffic.ts";
import { requireStillServing } from "./verify.ts";

type Counted = Pick<Rollout, "engine" | "project" | "liveDirectory" | "liveFilesRead" | "report">;

/** The guard sees what went wrong this much later. */
const pollMs = 100;
/** Caddy writes the line when the client has its answer already, and Docker's log has its warnings a little later. */
const settleMs = 200;

/**
 * Does `work` while the requests that go through the proxy are counted, gives it the count so far, and reports their
 * number, whether it succeeds or not. Without the lines in the Caddyfile that this needs, it reports those lines. Nothing
 * that goes wrong with the count changes the roll-out.
 */
export async function withRequestsCounted<Result>(
  rollout: Counted,
  work: (requestCount: RequestCount | null) => Promise<Result>,
): Promise<Result> {
  const noteFault = (error: unknown) => {
    const reason = error instanceof Error ? error.message : error;
    note(rollout, `the requests cannot be counted: ${reason}`);
    return null;
  };
  const counting = await startCounting(rollout).catch(noteFault);
  try {
    return await work(counting?.count ?? null);
  } finally {
    await counting?.end().catch(noteFault);
  }
}

interface Counting {
  /** Null if Caddy does not log requests. */
  readonly count: RequestCount | null;
  /** Reports the requests since the start. */
  readonly end: () => Promise<void>;
}

async function startCounting(rollout: Counted): Promise<Counting | null> {
  const { engine, project, liveDirectory: live, liveFilesRead, report } = rollout;
  if (live === null || liveFilesRead === null || liveFilesRead.size === 0) return null;
  if (!(await logsRequests(live))) {
    // On a server, `init` and `upgrade` write them.
    const missingLines = live.project === null ? countingLines("/run/live", null) : [];
    return { count: null, end: async () => report({ event: "requests", sites: null, missingLines }) };
  }
  const sinceMs = Date.now();
  const running = new Set((await listContainers(engine, project.name)).map(({ name }) => name));
  const tally = createTally((name) => name.startsWith(`${project.name}-`) && !running.has(name));
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
  const polling = repeat(readLog, over.signal);
  polling.catch(() => {}); // `end` reports it.
  const readWarnings = () => brokenAnswers(engine, live, sinceMs);
  return {
    count: { ...tally, readWarnings },
    async end() {
      await rm(switchPath, { force: true });
      over.abort();
      await polling;
      await sleep(settleMs);
      await readLog();
      await log.close();
      const warnings = tally.cutOff() === 0 ? [] : await readWarnings();
      const unknown = "some answers were cut off; whether the clients left is not known";
      if (warnings === null) note(rollout, `${unknown}: Caddy's log cannot be read`);
      const left = Map.groupBy(warnings?.filter(({ isLeaver }) => isLeaver) ?? [], ({ host }) => host);
      report({
        event: "requests",
        sites: tally.sites((host) => left.get(host)?.length ?? 0),
        missingLines: [],
      });
    },
  };
}

async function repeat(work: () => Promise<void>, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    await work();
    await sleep(pollMs, undefined, { signal: over }).catch(() => {});
  }
}

/** Reads what is appended to a log. */
export interface LogFollower {
  /** The whole lines since the last call. */
  readonly read: () => Promise<readonly string[]>;
  readonly close: () => Promise<void>;
}

const pieceBytes = 256 * 1024;

/**
 * Follows the log at `path` from its present end, also when its writer moves it aside and starts a new one. A log that is
 * not there yet is read from its beginning.
 */
export async function followLog(path: string): Promise<LogFollower> {
  let file = await openIfThere(path);
  let position = file === null ? 0 : (await file.stat()).size;
  let rest = "";

  async function readToEnd(): Promise<string> {
    const pieces: Buffer[] = [];
    while (file !== null) {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(pieceBytes), 0, pieceBytes, position);
      if (bytesRead === 0) break;
      pieces.push(buffer.subarray(0, bytesRead));
      position += bytesRead;
    }
    return Buffer.concat(pieces).toString();
  }

  async function read(): Promise<readonly string[]> {
    file ??= await openIfThere(path);
    let text = await readToEnd();
    const present = file === null ? null : await stat(path).catch(() => null);
    if (file !== null && present !== null && present.ino !== (await file.stat()).ino) {
      // What was written between the two looks.
      text += await readToEnd();
      await file.close();
      file = await openIfThere(path);
      position = 0;
      text += await readToEnd();
    }
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    return lines;
  }

  return { read, close: async () => file?.close() };
}

async function openIfThere(path: string): Promise<FileHandle | null> {
  try {
    return await open(path, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** A request in Caddy's log. */
export interface LoggedRequest {
  /** In small letters, without a port. */
  readonly host: string;
  /** The host that Caddy tried last, such as the name of a container; null if that is not known. */
  readonly container: string | null;
  /** When Caddy got it, in milliseconds since 1970; 0 if its log does not say. */
  readonly sentMs: number;
  /**
   * `answered`: by the app. `server error`: with 5xx, by the app. `failed`: by Caddy, because the app did not. `cut off`: the
   * answer broke off, or the client left in its middle. `left`: the client left before the answer.
   */
  readonly outcome: "answered" | "server error" | "failed" | "cut off" | "left";
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
  const line = parseLine<Line>(text);
  const { status, request, upstream } = line;
  if (status === undefined || request?.host === undefined) return null;
  const sentMs = 1_000 * (Number(line.ts) - Number(line.duration));
  return {
    host: hostOf(request.host),
    container: upstream ? upstream.replace(/:\d+$/, "") : null,
    sentMs: Number.isFinite(sentMs) ? sentMs : 0,
    outcome: outcomeOf(line, status),
  };
}

function parseLine<Fields>(text: string): Partial<Fields> {
  try {
    return JSON.parse(text) as Fields;
  } catch {
    return {};
  }
}

/** The host of a `Host` header, without its port, as both Caddy's log and people compare them. */
export function hostOf(header: string): string {
  return header.replace(/:[^:\]]*$/, "").toLowerCase();
}

function outcomeOf(line: Line, status: number): LoggedRequest["outcome"] {
  if (!("answered" in line)) return "cut off";
  // Caddy before 2.12 logs 0 for a client that has left, later ones 499.
  if (status === 0 || status === 499) return "left";
  if (status >= 500) return Number(line.answered) === status ? "server error" : "failed";
  // A second reverse_proxy took over, and its answer broke off before the fields were renewed.
  return status < 400 && line.upstream && !line.answered ? "cut off" : "answered";
}

/** The requests so far. */
export interface Tally extends Omit<RequestCount, "readWarnings"> {
  /** @param line of Caddy's log */
  readonly add: (line: string) => void;
  /** @param leftInTheMiddle how many of the cut off requests of a host were cut off by the client */
  readonly sites: (leftInTheMiddle: (host: string) => number) => readonly SiteRequests[];
}

type Mutable<Type> = { -readonly [Key in keyof Type]: Type[Key] };

interface Site extends Pick<Mutable<SiteRequests>, "requests" | "failed" | "left"> {
  cutOff: number;
  readonly before: Mutable<Answers>;
  readonly after: Mutable<Answers>;
}

/** Anybody may send any Host to a site without a name. */
const mostHosts = 20;
const otherHosts = "other hosts";

/** Makes a tally of requests by host. `isNew` says whether a container was started by the roll-out. */
export function createTally(isNew: (container: string) => boolean): Tally {
  const sites = new Map<string, Site>();
  const containers = new Map<string, Mutable<Answered>>();
  const cutOffMs: number[] = [];

  function siteOf(host: string): Site {
    const name = sites.has(host) || sites.size < mostHosts ? host : otherHosts;
    const none = () => ({ answers: 0, serverErrors: 0 });
    const site = sites.get(name) ?? {
      ...{ requests: 0, failed: 0, cutOff: 0, left: 0 },
      ...{ before: none(), after: none() },
    };
    sites.set(name, site);
    return site;
  }

  return {
    to(names) {
      const answered = names.flatMap((name) => containers.get(name) ?? []);
      const sum = (of: (one: Answered) => number) => answered.reduce((total, one) => total + of(one), 0);
      return { requests: sum(({ requests }) => requests), bad: sum(({ bad }) => bad) };
    },
    add(line) {
      const request = readLoggedRequest(line);
      if (request === null) return;
      const { host, container, sentMs, outcome } = request;
      const site = siteOf(host);
      site.requests += 1;
      if (outcome === "failed") site.failed += 1;
      if (outcome === "left") site.left += 1;
      if (outcome === "cut off") site.cutOff += 1;
      if (outcome === "cut off") cutOffMs.push(sentMs);
      if (container === null || outcome === "cut off" || outcome === "left") return;
      const answered = containers.get(container) ?? { requests: 0, bad: 0 };
      containers.set(container, answered);
      answered.requests += 1;
      if (outcome !== "answered") answered.bad += 1;
      if (outcome === "failed") return;
      const answers = isNew(container) ? site.after : site.before;
      answers.answers += 1;
      if (outcome === "server error") answers.serverErrors += 1;
    },
    sites: (leftInTheMiddle) =>
      [...sites].map(([host, { cutOff, ...site }]) => {
        const leavers = Math.min(cutOff, leftInTheMiddle(host));
        const brokeOff = cutOff - leavers;
        return { host, ...site, failed: site.failed + brokeOff, brokeOff, left: site.left + leavers };
      }),
    cutOff: (sinceMs = 0) => cutOffMs.filter((sentMs) => sentMs >= sinceMs).length,
  };
}

interface Listed {
  readonly Id: string;
  readonly Mounts?: readonly { readonly Source?: string }[];
}

/**
 * The answers that Caddy warned of since then, in milliseconds since 1970.
 *
 * @returns null if Docker's log of Caddy cannot be read
 */
export async function brokenAnswers(
  engine: Engine,
  live: LiveDirectory,
  sinceMs: number,
): Promise<readonly BrokenAnswer[] | null> {
  try {
    const own = await hostDirectoryOf(engine, live.path);
    // On a server, Caddy has the directories of all projects.
    const source = live.project === null ? own : dirname(own);
    const running = await getJson<readonly Listed[]>(engine, "/containers/json");
    const holders = running.filter(({ Mounts = [] }) => Mounts.some(({ Source }) => Source === source));
    const query = `stdout=1&stderr=1&since=${(sinceMs / 1_000).toFixed(3)}`;
    const logs = await Promise.all(holders.map(({ Id }) => engine.get(`/containers/${Id}/logs?${query}`)));
    return logs.flatMap((log) => plainLog(log).split("\n").flatMap(readWarning));
  } catch {
    return null;
  }
}

interface Warning {
  readonly ts?: unknown;
  readonly upstream?: string;
  readonly request?: { readonly host?: string };
  /** `reading: unexpected EOF` if the app ended, `writing: …` if the client did. */
  readonly error?: string;
}

function readWarning(line: string): readonly BrokenAnswer[] {
  if (!line.includes("aborting with incomplete response")) return [];
  const { ts, upstream = "", request, error = "" } = parseLine<Warning>(line.slice(line.indexOf("{")));
  if (request?.host === undefined) return [];
  const isLeaver = error.startsWith("writing:") || error.includes("context canceled");
  return [{ host: hostOf(request.host), upstream, atMs: 1_000 * Number(ts), isLeaver }];
}

/** The guard ends after this share of its time if not a fifth of the requests it needs has come: they would stay too few. */
const earlyShare = 0.2;
/** Docker is asked less often than the count. */
const looksPerInspection = 5;

/** What the guard of a service watches. */
interface Watched {
  readonly on: ServiceRollout;
  readonly over: AbortSignal;
  readonly fresh: Containers;
  readonly count: RequestCount;
  readonly directory: LiveDirectory;
  /** Caddy logs requests of the old version under these names. */
  readonly oldNames: readonly string[];
  readonly switchedMs: number;
}

/**
 * Watches the new containers for a while after the traffic has moved to them: the share of requests that go wrong, their restarts and
 * their health. The old ones still run, so that the caller can go back at once. There is no guard without a count of
 * requests, without an old version, and in a roll back.
 *
 * @param over ends the guard if the traffic goes back for another reason
 * @throws ProblemError `version_worse` or `container_not_healthy` if the new version must go, or the signal's reason if the
 * roll-out is asked to stop
 */
export async function guardNewVersion(
  on: ServiceRollout,
  old: Containers,
  fresh: Containers,
  over: AbortSignal,
): Promise<void> {
  const { service, traffic, requestCount: count, report } = on;
  if (traffic.by !== "live file" || count === null || service.guardMs === 0) return;
  if (old.length === 0 || on.version !== null) return;
  report({ event: "guarding", service: service.name, guardMs: service.guardMs });
  const { directory } = traffic;
  const oldNames = [ownName(directory, service.name), ...old.map(({ name }) => name)];
  const watched = { on, over, fresh, count, directory, oldNames, switchedMs: Date.now() };
  const guard = () => watch(watched);
  await timed(on, "guard", guard, (text) => text);
}

/** Until the first roll-out, and while a live file is stale, requests reach the service by this name. */
function ownName({ project }: LiveDirectory, service: string): string {
  return project === null ? service : serviceAlias(service, project);
}

/** @returns the verdict on a version that may stay */
async function watch(watched: Watched): Promise<string> {
  const { on, fresh, over } = watched;
  const { service, signal, env } = on;
  const startedMs = performance.now();
  const elapsedMs = () => performance.now() - startedMs;
  for (let look = 1; elapsedMs() < service.guardMs; look += 1) {
    await sleep(pollMs);
    if (over.aborted) return "ended: the requests go back for another reason";
    const isLongLook = look % looksPerInspection === 0;
    const verdict = (isLongLook ? await verdictOnBrokenOff(watched) : null) ?? verdictOn(watched);
    if (verdict.kind === "worse") {
      const detail = `The new version of ${service.name} (${namesOf(fresh)}) is worse than the one before: ${verdict.text}. Its requests went back to the old version ${formatDuration(elapsedMs())} after the guard began.`;
      throw new ProblemError({ code: "version_worse", detail });
    }
    if (isLongLook) await requireStillServing(on, fresh);
    signal.throwIfAborted();
    const order = readGuardOrder(env);
    if (order === "back") {
      const detail = `A roll back was requested while the new version of ${service.name} was guarded, so its requests went back to the old version: ${verdict.text}.`;
      throw new ProblemError({ code: "version_unwanted", detail });
    }
    if (order === "end") return `ended early: ${verdict.text}`;
    const isEarly = isLongLook && elapsedMs() >= earlyShare * service.guardMs;
    const seen = verdict.requests + watched.count.cutOff(watched.switchedMs);
    if (isEarly && seen < earlyShare * leastRequests) return verdict.text;
  }
  return verdictOn(watched).text;
}

function verdictOn({ fresh, count, oldNames }: Watched): GuardVerdict {
  return judge(count.to(fresh.map(({ name }) => name)), count.to(oldNames));
}

/** The verdict with the answers of this service that broke off, if they make the new version worse; else null. */
async function verdictOnBrokenOff(watched: Watched): Promise<GuardVerdict | null> {
  const { on, fresh, count, directory, oldNames, switchedMs } = watched;
  const withBad = ({ requests, bad }: Answered, more: number) => ({
    requests: requests + more,
    bad: bad + more,
  });
  const judgeWith = (now: number, before: number) =>
    judge(withBad(count.to(namesIn(fresh)), now), withBad(count.to(oldNames), before));
  // Without a look into Caddy's warnings, if all of them were answers of this service.
  const cutOff = count.cutOff(switchedMs);
  if (cutOff === 0 || judgeWith(cutOff, 0).kind !== "worse") return null;
  await sleep(settleMs);
  const warnings = await count.readWarnings();
  if (warnings === null) {
    const text = `${cutOff} answers broke off and count for no version: Caddy's log, which says whose they were, cannot be read`;
    note(on, text);
    return null;
  }
  const mine = warnings.filter((one) => !one.isLeaver && isOf(one, directory, on.service.name));
  const before = mine.filter(({ atMs }) => atMs < switchedMs).length;
  const verdict = judgeWith(Math.min(cutOff, mine.length - before), before);
  return verdict.kind === "worse" ? verdict : null;
}

function namesIn(containers: Containers): readonly string[] {
  return containers.map(({ name }) => name);
}

function isOf({ upstream }: BrokenAnswer, live: LiveDirectory, service: string): boolean {
  const [, file] = /^\{file\.(?:.*\/)?([^/}]*)\}/.exec(upstream) ?? [];
  const isInProject = live.project === null || upstream.includes(`/${live.project}/`);
  if (file !== undefined) return isInProject && isLiveFileOf(service, file);
  return upstream.replace(/:\d+$/, "") === ownName(live, service);
}

/** How a new version does, by the requests to it and to the one before. */
export interface GuardVerdict {
  readonly kind: "worse" | "good" | "too few";
  /** How many went to it. */
  readonly requests: number;
  readonly text: string;
}

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
  const { requests } = now;
  const text = `${countText(now)}, before ${countText(before)}`;
  const few = `too few requests to judge by, ${leastRequests} are needed: ${text}`;
  if (requests < leastRequests) return { kind: "too few", requests, text: few };
  const tolerated = Math.min(1, shareOf(before) + margin);
  const chance = deviations * Math.sqrt((tolerated * (1 - tolerated)) / requests);
  return { kind: shareOf(now) > tolerated + chance ? "worse" : "good", requests, text };
}

function shareOf({ requests, bad }: Answered): number {
  return requests === 0 ? 0 : bad / requests;
}

function countText(answered: Answered): string {
  const { requests, bad } = answered;
  const share = requests === 0 ? "" : ` (${Number((100 * shareOf(answered)).toFixed(1))} %)`;
  return `${bad.toLocaleString("en-US")} of ${requests.toLocaleString("en-US")} requests went wrong${share}`;
}
