import type { Log } from "#log";
import { repeat } from "#platform/async";
import type { RemoteHead } from "#platform/git";
import type { Store } from "#platform/sqlite";
import { liveCommit } from "./deployment.ts";
import { findLastGood } from "./history.ts";
import { isCommitId, shortCommit } from "./push.ts";
import type { Queue } from "./queue.ts";
import type { Resolver } from "./resolve.ts";
import { hasDeployment } from "./store.ts";
import { type NewImages, withoutTried } from "./watch-images.ts";

export interface CatchUpOptions {
  readonly store: Store;
  /** The branches that are deployed. */
  readonly refs: readonly string[];
  readonly readRemoteHead: (ref: string) => Promise<RemoteHead>;
  readonly judgeHead: Resolver["judgeHead"];
  /** Asks the registries, with DEPLOY_IMAGES. */
  readonly readNewImages: (() => Promise<NewImages>) | null;
  readonly request: Queue["request"];
  readonly log: Log;
  /** 0: the remote is asked only if a push gives a reason to. */
  readonly intervalMs: number;
  /** Runs a look when it may: projects share it, so that a few remotes are asked at a time. */
  readonly inTurn: (look: () => Promise<void>) => Promise<void>;
  /** Without the interval, the remote is asked at most this often. */
  readonly askEveryMs: number;
}

export interface CatchUp {
  /** Asks now, and from then on at every interval. */
  readonly start: () => void;
  /** Asks the remote about a branch soon, when nothing runs or waits: a delivery that came again may mean that it moved. */
  readonly look: (ref: string) => void;
  readonly stop: () => void;
  readonly report: () => CatchUpReport;
}

/** Whether missed pushes and new images are found, for a person. */
export interface CatchUpReport {
  /** 0: never */
  readonly intervalMs: number;
  /** When the remote was asked last, or null if it was not yet. */
  readonly lookedAtMs: number | null;
  /** What cannot be looked for, and why: the remote, or else a registry, did not answer; or null. */
  readonly failure: string | null;
}

/** How often to check whether what runs has ended. */
const busyMs = 1_000;

/**
 * Finds pushes whose delivery never came, because git hosts do not retry: it asks the remote where the branch is that was
 * deployed last, and requests a deployment if the rules would deploy its head. If they would not, it likewise asks the
 * registries for newer images, which are deployed with the commit that is live.
 */
export function createCatchUp(options: CatchUpOptions): CatchUp {
  const { store, refs, readRemoteHead, judgeHead, request, log, intervalMs, askEveryMs, inTurn } = options;
  const { readNewImages } = options;
  /** The branches to ask about. */
  const wanted = new Set<string>();
  let askedAtMs = Number.NEGATIVE_INFINITY;
  let lookedAtMs: number | null = null;
  let failure: string | null = null;
  let isStopped = false;
  /** At the start and after each interval, not at a delivery that is sent again: registries limit who asks. */
  let areImagesDue = false;
  let imageFault: string | null = null;
  let timer: NodeJS.Timeout | undefined;
  let interval: NodeJS.Timeout | undefined;
  const onFault = (error: unknown) =>
    log.error({ event: "catch_up.failed", err: error }, "Looking for missed pushes failed");
  const looks = repeat(lookAtWanted, { intervalMs, onFault });

  async function lookAtWanted(): Promise<void> {
    for (const ref of [...wanted]) {
      if (isStopped || isBusy(store)) break;
      wanted.delete(ref);
      await inTurn(() => lookAt(ref));
    }
    if (wanted.size > 0) schedule(busyMs);
  }

  async function lookAt(ref: string): Promise<void> {
    const missed = await lookForPushes(ref);
    if (areImagesDue && !isStopped && !isBusy(store)) {
      areImagesDue = false;
      imageFault = await lookForImages();
    }
    if (isStopped) return;
    const fault = missed ? `missed pushes: ${missed}` : imageFault && `new images: ${imageFault}`;
    if (fault !== null && failure === null)
      log.warn({ event: "catch_up.failed", ref }, `Cannot look for ${fault}`);
    failure = fault;
  }

  function schedule(leastMs: number): void {
    clearTimeout(timer);
    if (isStopped) return;
    const waitMs = Math.max(leastMs, askedAtMs + askEveryMs - performance.now());
    timer = setTimeout(looks.now, waitMs).unref();
  }

  /** @returns a function that says whether nothing runs and no push has come since: what did asks for itself */
  function startQuiet(): () => boolean {
    const newest = newestId(store);
    return () => !isStopped && newestId(store) === newest && !isBusy(store);
  }

  /** @returns why they cannot be found, or null */
  async function lookForPushes(ref: string): Promise<string | null> {
    const isQuiet = startQuiet();
    const remote = await readRemoteHead(ref);
    askedAtMs = performance.now();
    lookedAtMs = Date.now();
    if (remote.kind !== "head") return remote.detail;
    const { commit } = remote;
    const verdict = await judgeHead(ref, commit);
    if (!isQuiet()) return null;
    if (verdict === "wait") {
      wanted.add(ref);
      schedule(0);
    }
    if (verdict !== "deploy") return null;
    const { id } = request({ trigger: "catch-up", ref, commit });
    const fields = { event: "catch_up.found", deployment: id, ref, commit };
    const text = `${ref} is at ${shortCommit(commit)}, which is not what was deployed last: deployment ${id} catches up`;
    log.warn(fields, text);
    return null;
  }

  /** @returns why they cannot be found, or not be deployed; or null */
  async function lookForImages(): Promise<string | null> {
    const isQuiet = startQuiet();
    const found = await readNewImages?.();
    if (found?.kind === "fault") return found.detail;
    const images = found && isQuiet() ? withoutTried(store, found.images) : [];
    const live = findLastGood(store);
    if (images.length === 0 || live === null) return null;
    const commit = liveCommit(live);
    if (!isCommitId(commit) || !refs.includes(live.ref))
      return `what is live, ${commit}, is no commit of this branch. Run: hotpush deploy`;
    const { id } = request({ trigger: "image", ref: live.ref, commit, images });
    const fields = { event: "catch_up.found", deployment: id, images };
    log.info(fields, `A registry has ${images.join(", ")}: deployment ${id} rolls it out`);
    return null;
  }

  function lookAtLastDeployed(): void {
    areImagesDue = true;
    try {
      const last = findLastGood(store, refs);
      if (last === null) return;
      wanted.add(last.ref);
      looks.now();
    } catch (error) {
      // The disk may be away for a while.
      onFault(error);
    }
  }

  return {
    start() {
      if (intervalMs === 0) return;
      lookAtLastDeployed();
      interval = setInterval(lookAtLastDeployed, intervalMs).unref();
    },
    look(ref) {
      wanted.add(ref);
      schedule(0);
    },
    stop() {
      isStopped = true;
      clearInterval(interval);
      clearTimeout(timer);
    },
    report: () => ({ intervalMs, lookedAtMs, failure }),
  };
}

/** What runs or waits asks the remote for itself. */
function isBusy(store: Store): boolean {
  return hasDeployment(store, "project = $project AND state IN ('queued', 'running', 'interrupted')");
}

function newestId(store: Store): number {
  return Number(store.get("SELECT coalesce(max(id), 0) AS id FROM deployments WHERE project = $project")?.id);
}
