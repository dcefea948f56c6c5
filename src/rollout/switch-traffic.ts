import { readdir, readFile } from "node:fs/promises";
import { join, posix } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { liveMount, serviceAlias } from "#config/server";
import { formatDuration } from "#config/values";
import { loadModel } from "#platform/compose";
import { hostOf, namesOf } from "#platform/docker/containers";
import { getJson } from "#platform/docker/engine";
import { diagnose, isServing, withOwnHealth } from "#platform/docker/health";
import { replaceFile } from "#platform/files";
import { sendHttp } from "#platform/http";
import { ProblemError } from "#problems";
import type { Containers, LiveDirectory, Rollout, ServiceRollout, Site } from "./context.ts";
import { findLiveDirectory } from "./locate-project.ts";
import type { RolloutService } from "./project.ts";
import { timed } from "./report.ts";
import { containersOf } from "./service-containers.ts";

/** If the proxy does not report which live files it reads, each service gets one: it does no harm. */
export function onService<Known extends Pick<Rollout, "liveDirectory" | "liveFilesRead">>(
  { liveDirectory, ...rollout }: Known,
  service: RolloutService,
): Omit<Known, "liveDirectory"> & Pick<ServiceRollout, "service" | "directedBy"> {
  const isRead = rollout.liveFilesRead?.has(service.name) ?? true;
  return { ...rollout, service, directedBy: isRead ? liveDirectory : null };
}

/**
 * Reads the live files of a service. Each holds the host of one container that gets traffic; the proxy reads them on
 * every request. The first replica's file is named after the service (`app`), the others `app.2`, `app.3`.
 *
 * @returns the names in the order of the files; empty if nothing was switched yet
 */
async function namesInLiveFiles(directory: string, service: string): Promise<readonly string[]> {
  const files = await liveFiles(directory, service);
  const names = await Promise.all(files.map(({ file }) => readFile(join(directory, file), "utf8")));
  return [...new Set(names.map((name) => name.trim()).filter(Boolean))];
}

/** The names in the live files of the service; none if no live file directs its requests. */
export async function namesReceiving(
  on: Pick<ServiceRollout, "directedBy" | "service">,
): Promise<readonly string[]> {
  const { directedBy, service } = on;
  return directedBy === null ? [] : namesInLiveFiles(directedBy.path, service.name);
}

/**
 * Points the proxy at `containers`, from its next request on. Each file is replaced as a whole (rename) and synced to
 * disk before this returns, so neither the proxy nor a power cut ever leaves half a name. Files of replicas that no
 * longer exist name the first container, because the Caddyfile may still list them.
 *
 * @throws ProblemError `live_file_not_writable`, for example if the disk is full
 */
export async function switchLiveFiles(
  directory: string,
  service: string,
  containers: readonly string[],
): Promise<void> {
  const present = await liveFiles(directory, service);
  const count = Math.max(containers.length, present.at(-1)?.replica ?? 0);
  try {
    for (let replica = 1; replica <= count; replica += 1) {
      const file = replica === 1 ? service : `${service}.${replica}`;
      const container = containers[replica - 1] ?? containers[0];
      // No newline at the end: Caddy before 2.9 would dial it too.
      if (container !== undefined)
        replaceFile(join(directory, file), container, { mode: 0o644, owner: null });
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const detail = `The live files in ${directory} could not be written: ${reason}.`;
    throw new ProblemError({ code: "live_file_not_writable", detail }, error);
  }
}

/**
 * Sends the requests to `containers`, if a live file directs them. Without containers, nothing changes.
 *
 * @throws ProblemError `live_file_not_writable`
 */
export async function switchTraffic(
  on: ServiceRollout,
  containers: Containers,
  step: "switch" | "roll back" = "switch",
): Promise<void> {
  const { directedBy, service } = on;
  if (directedBy === null || containers.length === 0) return;
  const write = () => switchLiveFiles(directedBy.path, service.name, containers.map(hostOf));
  await timed(on, step, write, `requests now go to ${namesOf(containers)}`);
}

/** The live files of `service` that are there, in the order of its replicas. */
async function liveFiles(directory: string, service: string) {
  const files = (await readdir(directory)).map((file) => ({ file, replica: replicaOf(service, file) }));
  return files.filter(({ replica }) => replica > 0).sort((one, other) => one.replica - other.replica);
}

/** The replica (from 1) that a live file of `service` is for: `app`, `app.2`; 0 for other files, such as `app.02`. */
export function replicaOf(service: string, file: string): number {
  if (file === service) return 1;
  const rest = file.startsWith(`${service}.`) ? file.slice(service.length + 1) : "";
  return /^(?:[2-9]|[1-9]\d+)$/.test(rest) ? Number(rest) : 0;
}

/**
 * Requests the service as its users do: at the URL in the label `hotpush.check`, else at its site.
 *
 * @param fresh its new containers: the log of the first one explains a failure
 * @param mostBad so many bad answers in a row make it fail
 * @param site where the old version was asked
 * @throws ProblemError `proxy_check_failed` with the last bad answer
 */
export async function checkThroughProxy(
  on: Pick<ServiceRollout, "engine" | "report" | "service" | "signal">,
  fresh: Containers = [],
  mostBad = tolerated,
  site: Site | null = null,
): Promise<void> {
  const { name, checkUrl } = on.service;
  const url = checkUrl ?? site?.url;
  if (url === undefined) return;
  const ask = async () =>
    checkUrl === null && site ? site.worseAnswerOf(fresh, on.signal) : badAnswerOf(url);
  const [enough, how] = checkUrl === null ? [oneAnswer, "as well as the old version"] : [{}, "well"];
  const check = async () => {
    const lastAnswer = await pollUntilGood(ask, on.signal, { mostBad, ...enough });
    if (lastAnswer === null) return;
    const detail = `${name} was healthy but did not answer well through the proxy at ${url} (last: ${lastAnswer}).`;
    const [first] = fresh;
    const { evidence = [] } = first ? (await diagnose(on.engine, first, "answers badly")).problem : {};
    throw new ProblemError({ code: "proxy_check_failed", detail, evidence });
  };
  await timed(on, "check", check, `${url} answers ${how}`);
}

/** Bad answers in a row that make it fail. */
const tolerated = 5;

/** For a service that was down: nothing can be switched back, and a proxy may need seconds to see the new container. */
export const patient = Number.POSITIVE_INFINITY;

const checkPollMs = 100;
const checkTimeoutMs = 15_000;
/** Good answers in a row that make the check pass. */
const goodAnswers = 6;
/** One answer of the app is enough at its site. The first one may time out after 10 s: there is always a second try. */
const oneAnswer = { enough: 1, withinMs: 25_000 };

/**
 * Asks, through the proxy, until there were a few good answers in a row.
 *
 * @param ask returns a bad answer, or null
 * @param signal ends it, and is thrown
 * @returns the last bad answer if it does not, else null
 */
export async function pollUntilGood(
  ask: () => Promise<string | null>,
  signal: AbortSignal,
  { mostBad = tolerated, enough = goodAnswers, withinMs = checkTimeoutMs } = {},
): Promise<string | null> {
  const deadlineMs = performance.now() + withinMs;
  for (let good = 0, bad = 0; ; ) {
    const answer = await ask();
    good = answer === null ? good + 1 : 0;
    bad = answer === null ? 0 : bad + 1;
    if (good === enough) return null;
    if (answer !== null && (bad >= mostBad || performance.now() > deadlineMs)) return answer;
    await sleep(checkPollMs, undefined, { signal });
  }
}

/** Null if the answer is good, else a description of it. */
export async function badAnswerOf(url: string): Promise<string | null> {
  try {
    const status = await finalStatus(new URL(url), AbortSignal.timeout(answerTimeoutMs));
    return status >= 200 && status < 300 ? null : `status ${status}`;
  } catch (error) {
    return error instanceof Error ? error.message || error.name : String(error);
  }
}

async function finalStatus(url: URL, signal: AbortSignal, redirectsLeft = 10): Promise<number> {
  const { status, headers } = await sendHttp(url, { signal });
  if (status < 300 || status > 399 || !headers.location || redirectsLeft === 0) return status;
  return finalStatus(new URL(headers.location, url), signal, redirectsLeft - 1);
}

/** Of one request, to Caddy's admin API or to the service. */
const answerTimeoutMs = 5_000;

/**
 * How many requests Caddy may have in flight to the containers `names` of `service`. Those to other services and other
 * projects, whose live files have other paths, do not count. See
 * https://caddyserver.com/docs/api#get-reverse-proxyupstreams
 *
 * Counted are also requests to the service under no container's name. Before 2.11.2, these are all that a live file
 * directed (https://github.com/caddyserver/caddy/pull/7517). Later versions count each of those both ways, except
 * if the file named the service itself when it came. Added are requests that reached no container by the
 * live file, and went to the service's name on the server instead.
 *
 * @param service null: only those that Caddy counts under the names
 * @returns null if Caddy does not answer
 */
export async function requestsInFlight(
  live: LiveDirectory,
  service: string | null,
  names: readonly string[],
): Promise<number | null> {
  const answer = await askCaddy(live, "/reverse_proxy/upstreams");
  if (answer === null) return null;
  const upstreams: readonly Upstream[] = JSON.parse(answer) ?? [];
  const total = (isMeant: (address: string) => boolean) =>
    upstreams.reduce((sum, one) => sum + (isMeant(one.address) ? one.num_requests : 0), 0);
  const to = (isMeant: (host: string) => boolean) =>
    total((address) => isMeant(address.replace(/:\d+$/, "")));
  if (service === null) return to((host) => names.includes(host));
  const alias = live.project === null ? null : serviceAlias(service, live.project);
  // Excludes upstreams that the Caddyfile names itself, such as another service: no live file counts their
  // requests.
  const known = new Set([...names, ...(await namesInLiveFiles(live.path, service))]);
  const byFile = total((address) => filesIn(live, address).some((file) => replicaOf(service, file) > 0));
  const named = to((host) => known.has(host) && host !== alias);
  return to((host) => names.includes(host)) + Math.max(0, byFile - named) + to((host) => host === alias);
}

/** The service's own host: Caddy uses it before the first roll-out, and if the live file names nothing that runs. */
export function ownHostOf({ project }: LiveDirectory, service: string): string {
  return project === null ? service : serviceAlias(service, project);
}

interface Upstream {
  readonly address: string;
  readonly num_requests: number;
}

/**
 * The live files of this project that Caddy's configuration reads (`{file./run/live/app}` → `app`, and on the server
 *  `{file./run/live/shop/app}` → `app`).
 *
 * @returns null if Caddy does not answer
 */
export async function findLiveFilesRead(live: LiveDirectory): Promise<ReadonlySet<string> | null> {
  const answer = await askCaddy(live, "/config/");
  return answer === null ? null : new Set(filesIn(live, answer));
}

/**
 * The project's live files that `text` names. On the server the whole path counts: other projects have files of
 * the same name. A Caddy of the project's own may have them at any place.
 */
export function filesIn({ project }: LiveDirectory, text: string): readonly string[] {
  const paths = [...text.matchAll(/\{file\.([^}]*)\}/g)].map(([, path = ""]) => posix.parse(path));
  const mine = project === null ? null : posix.join(liveMount, project);
  return paths.filter(({ dir }) => mine === null || dir === mine).map(({ base }) => base);
}

/** Asks Caddy's admin API. @returns null if it does not answer */
export async function askCaddy({ adminSocket }: LiveDirectory, path: string): Promise<string | null> {
  const target = { socketPath: adminSocket, path };
  // Caddy refuses an Origin that it does not know. It accepts this host without an Origin.
  const headers = { host: "localhost" };
  const answer = await sendHttp(target, { headers, timeoutMs: answerTimeoutMs }).catch(() => null);
  return answer?.status === 200 ? answer.body.toString() : null;
}

/**
 * Waits until the proxy reports no request to `containers`, which get no new ones any more.
 *
 * @param signal ends the wait if the traffic goes back
 * @returns the milliseconds that took; null if no live file directs the requests of the service
 */
export async function drainOld(
  on: ServiceRollout,
  containers: Containers,
  signal?: AbortSignal,
): Promise<number | null> {
  const { directedBy, service } = on;
  if (directedBy === null) return null;
  const names = namesOf(containers);
  const wait = () => drain(directedBy, service, containers.map(hostOf), signal);
  const { durationMs } = await timed(on, "drain", wait, (left) => {
    if (left === "given up") return `${names} not drained: the requests go back there`;
    if (left === "blind")
      return `Caddy did not answer on admin.sock in the live directory: waited ${formatDuration(blindMsOf(service))} instead`;
    return left === 0
      ? `no request is left in ${names}`
      : `${left} requests were still under way at the limit`;
  });
  return durationMs;
}

/** How long the requests and streams of an old container may take to end, without a label. */
const defaultDrainTimeoutMs = 30_000;
/** The wait if Caddy does not answer: as long as the longest request. */
const longestRequestMs = 10_000;
/** Caddy chooses the upstream a moment before it counts the request: a count of zero is believed only after this time. */
const settleMs = 200;
const pollMs = 50;

type Drainable = Pick<RolloutService, "name" | "drainTimeoutMs">;

function blindMsOf({ drainTimeoutMs }: Drainable): number {
  return drainTimeoutMs ?? longestRequestMs;
}

/**
 * Waits until the proxy has no request in flight to `containers` of `service`, which it has been switched away from.
 *
 * @returns how many are left at the limit; `blind`: Caddy does not report; `given up`: the signal was aborted
 */
export async function drain(
  live: LiveDirectory,
  service: Drainable,
  containers: readonly string[],
  signal?: AbortSignal,
): Promise<number | "blind" | "given up"> {
  const wait = (ms: number) => sleep(ms, undefined, { signal });
  const deadlineMs = performance.now() + settleMs + (service.drainTimeoutMs ?? defaultDrainTimeoutMs);
  try {
    await wait(settleMs);
    for (let wasIdle = false; ; ) {
      const inFlight = await requestsInFlight(live, service.name, containers);
      signal?.throwIfAborted();
      if (inFlight === null) {
        await wait(blindMsOf(service));
        return "blind";
      }
      // A request that arrives while Caddy counts may be in only one of the numbers. The next poll sees both.
      if ((inFlight === 0 && wasIdle) || performance.now() > deadlineMs) return inFlight;
      wasIdle = inFlight === 0;
      await wait(pollMs);
    }
  } catch (error) {
    if (signal?.aborted) return "given up";
    throw error;
  }
}

/**
 * Writes live files of `services` that are missing or name nothing that serves. On the first roll-out, their volume is created with
 * the proxy, which may start after the services behind it.
 */
export async function adoptLiveFiles(rollout: Rollout, services: readonly RolloutService[]): Promise<void> {
  const { engine } = rollout;
  const liveDirectory =
    rollout.liveDirectory ?? (await findLiveDirectory(engine, await loadModel(rollout), rollout.env));
  if (liveDirectory === null) return;
  const now = { ...rollout, liveDirectory, liveFilesRead: await findLiveFilesRead(liveDirectory) };
  if (rollout.liveDirectory === null) await refuseForeignLiveFiles(now);
  for (const service of services) if (service.mode.how === "roll") await adopt(onService(now, service));
}

async function adopt(on: ServiceRollout): Promise<void> {
  const serving = (await withOwnHealth(on.engine, await containersOf(on))).filter(isServing);
  const named = await namesReceiving(on);
  if (!serving.some((one) => named.includes(hostOf(one)))) await switchTraffic(on, serving);
}

/**
 * Refuses a live file that names a container of another compose project: two projects that share a volume at /run/live would
 * switch each other's traffic.
 *
 * @throws ProblemError `live_file_shared` with both projects and the file
 */
export async function refuseForeignLiveFiles(
  rollout: Pick<Rollout, "engine" | "project" | "liveDirectory" | "liveFilesRead">,
): Promise<void> {
  const { engine, project, liveDirectory } = rollout;
  if (liveDirectory === null) return;
  const everyone = await getJson<readonly Anyone[]>(engine, "/containers/json?all=1");
  for (const service of project.services.filter(({ mode }) => mode.how === "roll")) {
    for (const name of await namesReceiving(onService(rollout, service))) {
      const bearer = everyone.find(({ Id, Names }) => Names.includes(`/${name}`) || Id.slice(0, 12) === name);
      const owner = bearer?.Labels?.["com.docker.compose.project"] ?? project.name;
      if (owner === project.name) continue;
      const file = join(liveDirectory.path, service.name);
      const detail = `The live file ${file} of the project ${project.name} names ${name}, a container of the project ${owner}: a roll-out would take over the requests of ${owner}. Mount another volume at /run/live, or rename the service in the compose file and the Caddyfile. If ${owner} is gone for good: docker compose --project-name ${owner} down.`;
      throw new ProblemError({ code: "live_file_shared", detail });
    }
  }
}

/** A container of any compose project, or of none, as the engine lists it. */
interface Anyone {
  readonly Id: string;
  readonly Names: readonly string[];
  readonly Labels: Readonly<Record<string, string>> | null;
}
