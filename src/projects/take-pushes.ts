import { join } from "node:path";
import { isProjectName } from "#config/project-files";
import { listDeployments, pruneHistory } from "#deployments/history";
import {
  type AskRun,
  type FrontAnswers,
  isCommitId,
  isJsonObject,
  isPlainRepository,
  type JsonObject,
  mainRefs,
  mostOffered,
  type Push,
  type PushRecord,
  spoolName,
} from "#deployments/push";
import { recordPush } from "#deployments/record";
import { createLogThrottle, pause } from "#platform/async";
import { listForeignDirectory, readForeignFile } from "#platform/foreign-files";
import type { Project, Shared } from "./project.ts";
import type { ProjectRegistry } from "./registry.ts";

/** Whether pushes come in, for a person. */
export interface TakeReport {
  /** When `front` called last, or null if it has not yet. */
  readonly reachedAtMs: number | null;
  /** Why the spool could not be read, or that `front` is silent; or null. */
  readonly failure: string | null;
}

export interface Taking {
  readonly report: () => TakeReport;
  /** Answers a call of `front`, whatever it says; null if there is no such call. */
  readonly answer: AskRun;
  /** Resolves when the service stops and nothing is under way. Never rejects. */
  readonly ended: Promise<void>;
}

/** A push that is recorded waits no longer than this if `front` is gone. */
const lookEveryMs = 1_000;
/** `front` calls every few seconds, whether it has something or not. */
const longestSilenceMs = 10_000;
const mostListed = 2_000;
const longestPushBytes = 16 * 1024;
/** Of `front`, which asks again. Each takes some milliseconds. */
const mostCallsWaiting = 16;
const leastRefreshMs = 500;
/** How many of what was recorded is remembered, so that `front` can answer its sender. */
const mostRemembered = 1_000;
/** Ids whose files are gone are kept for long after that: a power cut may bring a file back. */
const mostIds = 20_000;
/** After so many pushes of a project its history is pruned: nothing may be deployed, and so be pruned after, for long. */
const pushesPerPruning = 50;
const linesPerMinute = 10;

/**
 * Takes pushes from the spool of `front`, and records each once, as a deployment of its project. `front` may be in the hands
 * of an attacker: nothing in the spool is followed or waited for, its files are bounded in number and size, and each push is
 * rebuilt from fields that were checked. One for a project that is not there, or for a branch or repository that it does not
 * deploy, is refused.
 */
export function takePushes(shared: Shared, projects: ProjectRegistry, isSplit: boolean): Taking {
  const { machine, store, log, stopping } = shared;
  const directory = machine.spoolPath;
  const remembered = new Map<string, PushRecord | null>();
  const underWay = new Map<string, Promise<PushRecord | null>>();
  const counts = new Map<string, number>();
  let failure: string | null = null;
  let heardAtMs: number | null = null;
  let callsWaiting = 0;
  let usesNotedAtMs = Number.NEGATIVE_INFINITY;
  /** Whether the projects were read since what is taken now was put into the spool. */
  let isFresh = false;
  let turn: Promise<void> = Promise.resolve();
  const mayLog = createLogThrottle<string>(linesPerMinute, 60_000, (event, count) =>
    log.warn({ event: "spool.more", kind: event, count }, `${count} more of ${event}`),
  );

  /** Looks for pushes that nobody offers. */
  async function look(): Promise<void> {
    const names = [...listForeignDirectory(directory, mostListed)].sort();
    const ids = names.flatMap((name) => /^([0-9a-f]{32})\.push$/.exec(name)?.[1] ?? []);
    while (ids.length > 0 && !stopping.aborted) await takeInTurn(ids.splice(0, mostOffered));
    pruneIds();
    if (failure !== null) log.info({ event: "spool.read" }, "The spool can be read again");
    failure = null;
  }

  async function lookAgain(): Promise<void> {
    while (!stopping.aborted) {
      await look().catch(reportFailure);
      await pause(lookEveryMs, stopping);
    }
    await turn;
  }

  /** Only the first failure of a row is logged. Before `front` has called, the directory may not be there. */
  function reportFailure(error: unknown): void {
    const { code, message } = error as NodeJS.ErrnoException;
    if (heardAtMs === null && code === "ENOENT") return;
    if (failure === null && mayLog("spool.failed"))
      log.warn({ event: "spool.failed", err: error }, `Pushes cannot be taken from ${directory}`);
    failure = code ?? message;
  }

  /** One call after the other, and after a full one of another process as long a rest: a flood leaves half of the time. */
  function takeInTurn(ids: readonly string[]): Promise<FrontAnswers["pushes"]> {
    const taken = turn.then(async () => {
      const startMs = performance.now();
      const answers = await takeAll(ids);
      return { answers, restMs: (performance.now() - startMs) * (ids.length / mostOffered) ** 2 };
    });
    turn = taken.then(
      ({ restMs }) => (isSplit ? pause(restMs, stopping) : undefined),
      () => {},
    );
    return taken.then(({ answers }) => answers);
  }

  async function takeAll(ids: readonly string[]): Promise<FrontAnswers["pushes"]> {
    isFresh = false;
    const taken = ids.map(async (id) => {
      try {
        return [{ id, record: await take(id) }];
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        // Gone, because another `front` deleted it; or it cannot be read or recorded now, and is tried again.
        if (code !== "ENOENT" && mayLog("spool.unrecorded"))
          log.error({ event: "spool.unrecorded", err: error }, "A push in the spool could not be recorded");
        return [];
      }
    });
    return (await Promise.all(taken)).flat();
  }

  async function take(id: string): Promise<PushRecord | null> {
    const known = remembered.get(id);
    if (known !== undefined) return known;
    const taking = underWay.get(id) ?? takeNew(id);
    underWay.set(id, taking);
    try {
      const record = await taking;
      remembered.set(id, record);
      for (const oldest of remembered.keys()) if (remembered.size > mostRemembered) remembered.delete(oldest);
      return record;
    } finally {
      underWay.delete(id);
    }
  }

  async function takeNew(id: string): Promise<PushRecord | null> {
    if (store.get("SELECT 1 FROM spooled WHERE id = ?", id)) return null;
    const text = readSpooled(join(directory, spoolName(id)));
    const offer = text === null ? null : readOffer(text);
    const note = () => store.run("INSERT INTO spooled (id) VALUES (?)", id);
    const record = offer && (await recordOffer(offer, note));
    if (record !== null) return record;
    await store.batch(note);
    const refused = "A push in the spool is none, or not for a project and branch of this server";
    if (mayLog("spool.refused")) log.error({ event: "spool.refused", project: offer?.project }, refused);
    return null;
  }

  async function recordOffer({ project: name, push }: Offer, note: () => void): Promise<PushRecord | null> {
    const noteAndPrune = () => {
      note();
      const count = (counts.get(name) ?? 0) + 1;
      counts.set(name, count % pushesPerPruning);
      if (count === pushesPerPruning) pruneHistory(store.of(name));
    };
    // The two processes read the projects at different moments.
    if (!isExpected(name, push) && !isFresh) {
      projects.refresh();
      isFresh = true;
    }
    if (!isExpected(name, push)) return null;
    const project = projects.find(name);
    if (project) return await project.accept(push, noteAndPrune);
    return await store.batch(() => {
      noteAndPrune();
      return recordPush(store.of(name), push);
    });
  }

  /** What came for a project whose settings are broken or gone waits until there are settings again. */
  function isExpected(name: string, push: Push): boolean {
    if (projects.faults().has(name)) return true;
    const project = projects.find(name);
    return project ? isWanted(project, push) : listDeployments(store.of(name), { limit: 1 }).length > 0;
  }

  function pruneIds(): void {
    const sql = "SELECT max(seq) - min(seq) AS n FROM spooled";
    if (Number(store.get(sql)?.n ?? 0) < mostIds * 2) return;
    store.transaction(() =>
      store.run("DELETE FROM spooled WHERE seq < (SELECT max(seq) FROM spooled) - ?", mostIds),
    );
  }

  async function dryRun(body: JsonObject): Promise<object> {
    const offer = readMembers(body);
    const project = offer && projects.find(offer.project);
    const isKnown = offer && project?.isServed && isWanted(project, offer.push);
    return { would: isKnown ? await project.dryRun(offer.push) : null };
  }

  function noteUses({ uses }: JsonObject): object {
    // A new secret is often used before it was read here, and its use would count for the old one.
    if (performance.now() - usesNotedAtMs >= leastRefreshMs) projects.refresh();
    usesNotedAtMs = performance.now();
    for (const use of listOf(uses)) {
      if (!isJsonObject(use)) continue;
      const { project, slot, host, deliveryId } = use;
      if (typeof project !== "string" || !isText(host, hostName)) continue;
      if (slot !== "current" && slot !== "previous") continue;
      const id = isText(deliveryId, deliveryName) ? deliveryId : null;
      projects.find(project)?.secretUses.note(slot, host, id);
    }
    return {};
  }

  const ended = lookAgain();
  return {
    report() {
      const isSilent = heardAtMs !== null && Date.now() - heardAtMs > longestSilenceMs;
      return { reachedAtMs: heardAtMs, failure: failure ?? (isSilent ? "front is silent" : null) };
    },
    ended,
    async answer(path, text) {
      const body = parsed(text);
      if (body === null) return null;
      heardAtMs = Date.now();
      if (path === "/front/dry-run") return await dryRun(body);
      if (path === "/front/uses") return noteUses(body);
      if (path !== "/front/pushes") return null;
      // A caller that hangs up leaves its call behind.
      if (callsWaiting >= mostCallsWaiting) return null;
      const ids = listOf(body.ids).filter((id) => isText(id, /^[0-9a-f]{32}$/));
      callsWaiting += 1;
      try {
        return { pushes: await takeInTurn([...new Set(ids)]) } satisfies FrontAnswers;
      } finally {
        callsWaiting -= 1;
      }
    },
  };
}

function isWanted({ settings, refs }: Project, { ref, repository }: Push): boolean {
  const wanted = settings.repository?.toLowerCase();
  return refs.includes(ref) && (wanted === undefined || repository?.toLowerCase() === wanted);
}

/** What no later look could read either. */
const hopeless = ["EISDIR", "EINVAL", "EFBIG", "EPERM", "ELOOP", "ENOTDIR"];

/** @returns null if it is no plain file of a push. @throws the system's error if it cannot be read now */
function readSpooled(path: string): string | null {
  try {
    return readForeignFile(path, { mostBytes: longestPushBytes, followsLinks: false }).toString("utf8");
  } catch (error) {
    if (hopeless.includes((error as NodeJS.ErrnoException).code ?? "")) return null;
    throw error;
  }
}

interface Offer {
  readonly project: string;
  readonly push: Push;
}

function readOffer(text: string): Offer | null {
  const value = parsed(text);
  return value && readMembers(value);
}

function parsed(text: string): JsonObject | null {
  try {
    const value = JSON.parse(text) as unknown;
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value.slice(0, mostOffered) : [];
}

function isText(value: unknown, pattern: RegExp): value is string {
  return typeof value === "string" && pattern.test(value);
}

const hostName = /^[a-z][a-z-]{0,39}$/;
const deliveryName = /^[A-Za-z0-9-]{1,64}$/;

/** A push is rebuilt from fields that were checked, one by one, and nothing else of it is used. */
function readMembers({ project, push }: JsonObject): Offer | null {
  if (typeof project !== "string" || !isProjectName(project) || !isJsonObject(push)) return null;
  const { host, ref, before, commit, repository, pusher, mentionsSkip, digest, deliveryId } = push;
  const branch = mainRefs.find((one) => one === ref);
  if (!isText(host, hostName) || branch === undefined) return null;
  if (!isCommitId(commit) || !(before === null || isCommitId(before))) return null;
  if (!isText(digest, /^[0-9a-f]{64}$/)) return null;
  return {
    project,
    push: {
      ...{ host, ref: branch, before, commit, digest },
      ...(mentionsSkip === true && { mentionsSkip }),
      repository: isPlainRepository(repository) ? repository : null,
      // Only for people: printable, and bounded.
      pusher: isText(pusher, /^[^\p{C}\u2028\u2029]{1,100}$/u) ? pusher : null,
      deliveryId: isText(deliveryId, deliveryName) ? deliveryId : null,
    },
  };
}
