import { setTimeout as sleep } from "node:timers/promises";
import { formatDuration } from "../../config/duration.ts";
import { serviceAlias } from "../../config/machine-part.ts";
import { inspectContainer, namesOf } from "../../platform/docker/container.ts";
import { diagnose } from "../../platform/docker/diagnosis.ts";
import { isStillReady } from "../../platform/docker/health.ts";
import { ProblemError } from "../../problems.ts";
import type { Containers, LiveDirectory, ServiceRollout } from "../context.ts";
import { timed } from "../report/report.ts";
import { clientsThatLeft } from "../requests/clients-that-left.ts";
import type { Answered, RequestCount } from "../requests/tally.ts";
import { readGuardOrder } from "./order.ts";
import { type GuardVerdict, judge } from "./verdict.ts";

const pollMs = 100;
/** Until Docker's log has what Caddy wrote before it logged a request. */
const settleMs = 200;
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
  const watched = { on, over, fresh, count, directory, oldNames: namesOfOld(directory, service.name, old) };
  await timed(
    on,
    "guard",
    () => watch(watched),
    (text) => text,
  );
}

/** Until the first roll-out, and while a live file is stale, requests reach the service by its own name. */
function namesOfOld({ project }: LiveDirectory, service: string, old: Containers): readonly string[] {
  const own = project === null ? service : serviceAlias(service, project);
  return [own, ...old.map(({ name }) => name)];
}

/** @returns the verdict on a version that may stay */
async function watch(watched: Watched): Promise<string> {
  const { on } = watched;
  const [startedMs, switchedMs] = [performance.now(), Date.now()];
  for (let look = 1; performance.now() - startedMs < on.service.guardMs; look += 1) {
    await sleep(pollMs);
    if (watched.over.aborted) return "ended: the requests go back for another reason";
    const isLongLook = look % looksPerInspection === 0;
    const brokeOff = isLongLook ? await verdictOnBrokenOff(watched, switchedMs) : null;
    const verdict = brokeOff ?? verdictOn(watched);
    if (verdict.kind === "worse") throw worse(watched, verdict, performance.now() - startedMs);
    if (isLongLook) await requireServing(watched);
    on.signal.throwIfAborted();
    const order = readGuardOrder(on.env);
    if (order === "back") throw unwanted(watched, verdict);
    if (order === "end") return `ended early: ${verdict.text}`;
  }
  return verdictOn(watched).text;
}

function verdictOn({ fresh, count, oldNames }: Watched): GuardVerdict {
  return judge(count.to(fresh.map(({ name }) => name)), count.to(oldNames));
}

/**
 * The verdict with the answers that broke off, if they make the new version worse. Caddy does not log which container gave
 * them. If no other service is behind it, the new one gave those that began after the switch.
 */
async function verdictOnBrokenOff(watched: Watched, switchedMs: number): Promise<GuardVerdict | null> {
  const { on, fresh, count, directory, oldNames } = watched;
  const cutOff = count.cutOff(switchedMs);
  if (cutOff === 0 || !isAloneBehindProxy(on)) return null;
  const before = withBad(count.to(oldNames), count.cutOff() - cutOff);
  const judgeWith = (brokeOff: number) =>
    judge(withBad(count.to(fresh.map(({ name }) => name)), brokeOff), before);
  if (judgeWith(cutOff).kind !== "worse") return null;
  await sleep(settleMs);
  const left = await clientsThatLeft(on.engine, directory, switchedMs);
  if (left === null) return null;
  const leavers = [...left.values()].reduce((sum, clients) => sum + clients, 0);
  const verdict = judgeWith(Math.max(0, cutOff - leavers));
  return verdict.kind === "worse" ? verdict : null;
}

/** Whether the proxy reads the live files of no other service. */
function isAloneBehindProxy({ liveFilesRead, service }: ServiceRollout): boolean {
  const others = [...(liveFilesRead ?? [])].filter((name) => name !== service.name);
  return liveFilesRead !== null && others.length === 0;
}

function withBad({ requests, bad }: Answered, more: number): Answered {
  return { requests: requests + more, bad: bad + more };
}

async function requireServing({ on: { engine }, fresh }: Watched): Promise<void> {
  for (const container of fresh) {
    const now = await inspectContainer(engine, container.id);
    if (now && isStillReady(now)) continue;
    throw await diagnose(engine, container, { kind: "fell" });
  }
}

function worse({ on, fresh }: Watched, { text }: GuardVerdict, afterMs: number): ProblemError {
  const detail = `The new version of ${on.service.name} (${namesOf(fresh)}) is worse than the one before: ${text}. Its requests went back to the old version ${formatDuration(afterMs)} after the guard began.`;
  return new ProblemError({ code: "version_worse", detail });
}

function unwanted({ on }: Watched, { text }: GuardVerdict): ProblemError {
  const detail = `A roll back was requested while the new version of ${on.service.name} was guarded, so its requests went back to the old version: ${text}.`;
  return new ProblemError({ code: "version_unwanted", detail });
}
