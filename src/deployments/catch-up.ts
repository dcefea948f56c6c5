import { shortCommit } from "#deployments/push";
import type { Log } from "#log";
import { repeat } from "#platform/async";
import type { RemoteHead } from "#platform/git";
import type { Store } from "#platform/sqlite";
import { liveCommit } from "./deployment.ts";
import { findLastGood } from "./history.ts";
import { isCommitId } from "./push.ts";
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
  /** With DEPLOY_IMAGES: asks the registries. */
  readonly readNewImages?: (() => Promise<NewImages>) | null;
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
  const { readNewImages = null } = options;
  /** The branches to ask about. */
  const wanted = new Set<string>();
  let askedAtMs = Number.NEGATIVE_INFINITY;
  let lookedAtMs: number | null = null;
  const failures = new Map<Sought, string>();
  let isStopped = false;
  let timer: NodeJS.Timeout | undefined;
  let interval: NodeJS.Timeout | undefined;
  const onFault = (error: unknown) =>
    log.error({ event: "catch_up.failed", err: error }, "Looking for missed pushes failed");
  const looks = repeat(lookAtWanted, { intervalMs, onFault });

  async function lookAtWanted(): Promise<void> {
    for (const ref of [...wanted]) {
      if (isStopped || isBusy(store)) break;
      wanted.delete(ref);
      await inTurn(() => look(ref));
      if (!isStopped && !isBusy(store)) await inTurn(() => lookForImages(ref));
    }
    if (wanted.size > 0) schedule(busyMs);
  }

  function schedule(leastMs: number): void {
    clearTimeout(timer);
    if (isStopped) return;
    const waitMs = Math.max(leastMs, askedAtMs + askEveryMs - performance.now());
    timer = setTimeout(looks.now, waitMs).unref();
  }

  async function look(ref: string): Promise<void> {
    const newest = newestId(store);
    const remote = await readRemoteHead(ref);
    askedAtMs = performance.now();
    if (isStopped) return;
    lookedAtMs = Date.now();
    noteFailure(ref, "missed pushes", remote.kind === "head" ? null : remote.detail);
    if (remote.kind !== "head") return;
    const { commit } = remote;
    const verdict = await judgeHead(ref, commit);
    // A push that came meanwhile asks for itself.
    if (isStopped || newestId(store) !== newest || isBusy(store)) return;
    if (verdict === "wait") {
      wanted.add(ref);
      schedule(0);
    }
    if (verdict !== "deploy") return;
    const { id } = request({ trigger: "catch-up", ref, commit });
    const fields = { event: "catch_up.found", deployment: id, ref, commit };
    const text = `${ref} is at ${shortCommit(commit)}, which is not what was deployed last: deployment ${id} catches up`;
    log.warn(fields, text);
  }

  async function lookForImages(ref: string): Promise<void> {
    const newest = newestId(store);
    const found = await readNewImages?.();
    if (found === undefined || isStopped || newestId(store) !== newest || isBusy(store)) return;
    const live = findLastGood(store);
    const commit = live && liveCommit(live);
    const hasCommit = live !== null && isCommitId(commit) && refs.includes(live.ref);
    const fault = `what is live, ${commit}, is no commit of this branch. Run: hotpush deploy`;
    const images = found.kind === "images" ? withoutTried(store, found.images) : [];
    const isUnable = images.length > 0 && !hasCommit;
    noteFailure(ref, "new images", found.kind === "fault" ? found.detail : isUnable ? fault : null);
    if (images.length === 0 || !hasCommit) return;
    const { id } = request({ trigger: "image", ref: live.ref, commit: liveCommit(live), images });
    const fields = { event: "catch_up.found", deployment: id, images };
    log.info(fields, `A registry has ${images.join(", ")}: deployment ${id} rolls it out`);
  }

  /** @param detail null: they are found */
  function noteFailure(ref: string, sought: Sought, detail: string | null): void {
    const failure = detail && `${sought}: ${detail}`;
    if (failure !== null && !failures.has(sought))
      log.warn({ event: "catch_up.failed", ref }, `Cannot look for ${failure}`);
    if (failure === null) failures.delete(sought);
    else failures.set(sought, failure);
  }

  function lookAtLastDeployed(): void {
    const last = findLastGood(store, refs);
    if (last === null) return;
    wanted.add(last.ref);
    looks.now();
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
    report: () => ({ intervalMs, lookedAtMs, failure: [...failures.values()][0] ?? null }),
  };
}

type Sought = "missed pushes" | "new images";

/** What runs or waits asks the remote for itself. */
function isBusy(store: Store): boolean {
  return hasDeployment(store, "project = $project AND state IN ('queued', 'running', 'interrupted')");
}

function newestId(store: Store): number {
  return Number(store.get("SELECT coalesce(max(id), 0) AS id FROM deployments WHERE project = $project")?.id);
}
