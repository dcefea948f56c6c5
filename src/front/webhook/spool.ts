import { randomBytes } from "node:crypto";
import { constants, mkdirSync, rmSync } from "node:fs";
import { type FileHandle, open, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { MissedDelivery } from "#calls/shapes";
import type { SecretSlot } from "#config/secret";
import {
  type AskRun,
  type FrontAnswers,
  mostOffered,
  type Push,
  type PushRecord,
  type StoredPush,
  spooledIdOf,
  spoolName,
  type Would,
} from "#deployments/push";
import type { Log } from "#log";
import { checkAtMostEvery, pause } from "#platform/async";
import { attempt, replaceFile } from "#platform/files";
import { sendHttp, withShortPath } from "#platform/http";

/** Verified pushes on disk, each a file of its own until `run` has recorded it: the only way in which a push reaches `run`. */
export type Spool = Awaited<ReturnType<typeof openSpool>>;

export interface SpoolOptions {
  readonly directory: string;
  readonly askRun: AskRun;
  readonly log: Log;
  /** How many pushes may wait. Default: 1,000. */
  readonly mostWaiting?: number;
}

/** How long the sender of a push waits for its record. Git hosts hang up after 10 s. */
const longestWaitMs = 500;
export const mostWaitingByDefault = 1_000;
const retryMs = 25;
const sweepEveryMs = 1_000;
const roundsPerCall = 3;
/** What is older was not just written: another `front` on this spool has left it, or `run` did not answer in time. */
const sweptAfterMs = 1_000;
const unfinishedMs = 60_000;
const probeEveryMs = 5_000;
const longestAnswerBytes = 256 * 1024;
/** Together within the longest body of a call, whatever is in them. */
const mostNoted = 20;

/**
 * Opens the spool in `directory`, which is made if it is missing. What an earlier `front` left there is offered again.
 *
 * @throws the system's error if it cannot be written
 */
export async function openSpool(options: SpoolOptions) {
  const { directory, log, mostWaiting = mostWaitingByDefault } = options;
  mkdirSync(directory, { recursive: true, mode: 0o750 });
  const opened = await open(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  const stopping = new AbortController();
  const senders = new Map<string, (record: PushRecord | null) => void>();
  const uses = new Map<string, object>();
  /** The ids of pushes whose files are being written: by a clock that was set back, these look old. */
  const writing = new Set<string>();
  let waiting = spooledIn(await readdir(directory)).length;
  let isOffering = false;
  const findProbeFault = checkAtMostEvery(probeEveryMs, () => (canWrite(directory) ? null : unwritable));

  /**
   * Resolves when the push is on disk, and recorded if that takes less than half a second.
   *
   * @throws Error if the spool is full or cannot be written: then nothing is promised
   */
  async function add(project: string, push: Push): Promise<PushRecord | StoredPush> {
    if (waiting >= mostWaiting)
      throw new Error(`${mostWaiting} pushes wait to be recorded: the spool is full`);
    waiting += 1;
    const id = newId();
    writing.add(id);
    try {
      await store(directory, opened, id, JSON.stringify({ project, push }));
    } catch (error) {
      waiting -= 1;
      throw error;
    } finally {
      writing.delete(id);
    }
    const { promise, resolve } = Promise.withResolvers<PushRecord | null>();
    senders.set(id, resolve);
    offerAll().catch(() => {});
    const record = await inTime(promise);
    senders.delete(id);
    return record ?? { kind: "stored", delivery: id };
  }

  /** Offers what senders wait for, all that came meanwhile at once. */
  async function offerAll(): Promise<void> {
    if (isOffering) return;
    isOffering = true;
    try {
      while (senders.size > 0 && !stopping.signal.aborted) {
        const isAnswered = await offer([...senders.keys()].slice(0, mostOffered));
        if (!isAnswered) await pause(retryMs, stopping.signal);
      }
    } finally {
      isOffering = false;
    }
  }

  /** @returns null if `run` does not answer */
  async function ask<Answer extends object>(path: string, body: object): Promise<Answer | null> {
    return (await options.askRun(path, JSON.stringify(body)).catch(() => null)) as Answer | null;
  }

  /** @returns whether `run` has answered for one of them */
  async function offer(ids: readonly string[]): Promise<boolean> {
    const answers = await ask<FrontAnswers>("/front/pushes", { ids });
    if (answers === null) return false;
    const recorded = answers.pushes.filter(({ id }) => ids.includes(id));
    await Promise.all(recorded.map(({ id }) => rm(join(directory, spoolName(id)), { force: true })));
    waiting = Math.max(0, waiting - recorded.length);
    for (const { id, record } of recorded) {
      senders.get(id)?.(record);
      senders.delete(id);
    }
    return recorded.length > 0;
  }

  async function sweep(): Promise<void> {
    const ids: string[] = [];
    const names = (await readdir(directory)).sort();
    // Others may use this spool too.
    waiting = spooledIn(names).length + writing.size;
    for (const name of names) {
      const id = spooledIdOf(name.replace(/\.new$/, ""));
      const isFinished = id !== null && name === spoolName(id);
      const path = join(directory, name);
      const isOwn = id !== null && (senders.has(id) || writing.has(id));
      const stats = id === null || isOwn ? null : await stat(path).catch(() => null);
      if (id === null || stats === null) continue;
      // A clock that was set back makes no file young.
      const ageMs = Math.abs(Date.now() - stats.mtimeMs);
      if (isFinished && ageMs > sweptAfterMs) ids.push(id);
      if (!isFinished && ageMs > unfinishedMs) await rm(path, { force: true });
    }
    while (ids.length > 0 && !stopping.signal.aborted) if (!(await offer(ids.splice(0, mostOffered)))) return;
  }

  async function sweepAgain(): Promise<void> {
    for (let round = 0; !stopping.signal.aborted; round += 1) {
      // So that `run` can say whether there is a front.
      if (round % roundsPerCall === 0) ask("/front/pushes", { ids: [] }).catch(() => {});
      sendUses().catch(() => {});
      await sweep().catch((error: unknown) =>
        log.error({ event: "spool.failed", err: error }, "What waits in the spool could not be offered"),
      );
      await pause(sweepEveryMs, stopping.signal);
    }
  }

  async function sendUses(): Promise<void> {
    const noted = [...uses.entries()].slice(0, mostNoted);
    if (noted.length === 0) return;
    const isNoted = (await ask("/front/uses", { uses: noted.map(([, use]) => use) })) !== null;
    for (const [key, use] of isNoted ? noted : []) if (uses.get(key) === use) uses.delete(key);
  }

  const sweeping = sweepAgain();
  return {
    add,
    /** @returns null if nobody answers within half a second */
    async dryRun(project: string, push: Push): Promise<Would | null> {
      const asked = ask<{ readonly would: Would | null }>("/front/dry-run", { project, push });
      return (await inTime(asked))?.would ?? null;
    },
    /** Notes that a secret has signed a delivery. `run` learns of it within some seconds. */
    noteSecretUse(project: string, slot: SecretSlot, host: string, deliveryId: string | null): void {
      uses.set(slot === "current" ? project : `${project} ${slot}`, { project, slot, host, deliveryId });
    },
    /** Notes a delivery that deploys nothing, the last one of each kind. Strangers can send as many as they like. */
    noteMissed(missed: Omit<MissedDelivery, "at">): void {
      uses.set(`${missed.project} ${missed.kind}`, { ...missed, at: new Date().toISOString() });
    },
    /** Why no push can be stored, or null. */
    findFault(): string | null {
      if (waiting >= mostWaiting) return "The spool is full: the process that deploys records no pushes.";
      return findProbeFault();
    },
    /** Stops to offer what waits. What is on disk stays there. */
    async close(): Promise<void> {
      stopping.abort();
      await sweeping;
      await opened.close();
    },
  };
}

/** 48 bits of the time and 80 that are random, so that what waits can be recorded in the order in which it came. */
function newId(): string {
  return Date.now().toString(16).padStart(12, "0") + randomBytes(10).toString("hex");
}

const unwritable = "The spool cannot be written. The log of the service says more.";

function spooledIn(names: readonly string[]): readonly string[] {
  return names.filter((name) => spooledIdOf(name) !== null);
}

/** Written, synced, renamed, and its directory synced: after a power cut it is there as a whole. */
async function store(directory: string, opened: FileHandle, id: string, text: string): Promise<void> {
  const path = join(directory, spoolName(id));
  const unfinished = `${path}.new`;
  try {
    const file = await open(unfinished, "wx", 0o640);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(unfinished, path);
    await opened.sync();
  } catch (error) {
    await Promise.all([unfinished, path].map((one) => rm(one, { force: true }).catch(() => {})));
    throw error;
  }
}

function canWrite(directory: string): boolean {
  const path = join(directory, ".probe");
  const probe = () => {
    replaceFile(path, "probe", { mode: 0o600, owner: null });
    rmSync(path);
    return true;
  };
  return attempt(probe, false);
}

/** Asks the `run` that listens at `socketPath`. */
export function askOverSocket(socketPath: string): AskRun {
  return async (path, body) => {
    const post = { method: "POST", body, timeoutMs: 5_000 };
    const answer = await withShortPath(socketPath, (shortPath) =>
      sendHttp({ socketPath: shortPath, path }, post, longestAnswerBytes),
    );
    return answer.status === 200 ? (JSON.parse(answer.body.toString("utf8")) as object) : null;
  };
}

function inTime<Answer>(asked: Promise<Answer | null>): Promise<Answer | null> {
  return Promise.race([asked, sleep(longestWaitMs, null, { ref: false })]);
}
