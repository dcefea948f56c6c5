import type { Log } from "../log.ts";
import { repeat } from "../platform/repeat.ts";
import type { Store } from "../platform/sqlite/store.ts";
import { isCommitId } from "../receiver/push.ts";
import type { RemoteHead } from "./deployment.ts";
import { createBelieveHead, createDoubts, type Doubt, type HeadAnswer } from "./doubts.ts";
import { findLastDeployedRef } from "./history.ts";
import type { Queue } from "./queue.ts";

export interface CatchUpOptions {
  readonly store: Store;
  /** The branches that are deployed. */
  readonly refs: readonly string[];
  readonly readRemoteHead: (ref: string) => Promise<RemoteHead>;
  readonly request: Queue["request"];
  readonly log: Log;
  /** 0: the remote is asked only about doubtful pushes */
  readonly intervalMs: number;
  /** Runs a look when it may: projects share it, so that a few remotes are asked at a time. */
  readonly inTurn?: (look: () => Promise<void>) => Promise<void>;
  /** The remote is asked about doubtful pushes at most this often. The default is 10 s. */
  readonly askEveryMs?: number;
}

export interface CatchUp {
  /** Asks after `delayMs`, and from then on at every interval. */
  readonly start: (delayMs: number) => void;
  /** Asks the remote soon whether it is at the commit of a doubtful push. */
  readonly resolve: (doubt: Doubt) => void;
  readonly stop: () => void;
  readonly report: () => CatchUpReport;
}

/** Whether missed pushes are found, for a person. */
export interface CatchUpReport {
  /** 0: never */
  readonly intervalMs: number;
  /** When the remote was asked last, or null if it was not yet. */
  readonly lookedAtMs: number | null;
  /** Why the remote did not answer, or null. */
  readonly failure: string | null;
}

/**
 * Finds pushes whose delivery never came, because git hosts do not retry. It compares the branch that was deployed last
 * with the remote, and deploys a head that was not deployed. It also asks the remote about pushes that may be old.
 */
export function createCatchUp(options: CatchUpOptions): CatchUp {
  const { store, refs, readRemoteHead, request, log, intervalMs, askEveryMs = 10_000 } = options;
  const { inTurn = (look) => look() } = options;
  const believeHead = createBelieveHead(
    store,
    intervalMs === 0 ? askEveryMs : Math.min(askEveryMs, intervalMs),
  );
  let failure: string | null = null;
  let lookedAtMs: number | null = null;
  let isStopped = false;
  let delayTimer: NodeJS.Timeout | undefined;
  const onFault = (error: unknown) =>
    log.error({ event: "catch_up.failed", err: error }, "Looking for missed pushes failed");
  const looks = repeat(() => inTurn(lookAtLastDeployed), { intervalMs, onFault });
  const doubts = createDoubts({ store, askEveryMs, onFault, ask: look, deploy: deployUnconfirmed });

  async function lookAtLastDeployed(): Promise<void> {
    const ref = isStopped ? null : findLastDeployedRef(store, refs);
    if (ref !== null) await look(ref);
  }

  /** Asks the remote where `ref` is, and deploys that commit if it is missing. */
  async function look(ref: string, doubted: ReadonlyMap<string, Doubt> = new Map()): Promise<HeadAnswer> {
    const newestBefore = newestId(store);
    const remote = await readRemoteHead(ref);
    if (isStopped) return { kind: "overtaken" };
    lookedAtMs = Date.now();
    if (remote.kind === "unknown") {
      noteFailure(ref, remote.detail);
      return { kind: "unknown" };
    }
    failure = null;
    // The answer may be older than a push that came meanwhile.
    if (!isCommitId(remote.commit) || newestId(store) !== newestBefore) return { kind: "overtaken" };
    const head = remote.commit;
    const doubt = doubted.get(head);
    const kind = believeHead(ref, head, doubt?.isFirst);
    const step = { ref, before: doubt?.before ?? null, commit: head };
    if (kind === "missing") deploy(step, `${ref} is at ${head.slice(0, 7)}`);
    return { kind, head };
  }

  function noteFailure(ref: string, detail: string): void {
    const text = `Missed pushes cannot be found at the moment: ${detail}`;
    if (failure === null) log.warn({ event: "catch_up.failed", ref }, text);
    failure = detail;
  }

  /** Deploys a push that may be old, because the remote does not answer. */
  function deployUnconfirmed(doubt: Doubt): void {
    const commit = doubt.commit.slice(0, 7);
    deploy(doubt, `The remote does not say where ${doubt.ref} is, a push says ${commit}`);
  }

  function deploy({ ref, before, commit }: Pick<Doubt, "ref" | "before" | "commit">, why: string): void {
    const { id } = request({ trigger: "catch-up", ref, before, commit });
    const fields = { event: "catch_up.found", deployment: id, ref, commit };
    log.warn(fields, `${why}, which is not what was deployed last: deployment ${id} catches up`);
  }

  return {
    start(delayMs) {
      isStopped = false;
      if (intervalMs === 0) return;
      const begin = () => {
        looks.now();
        looks.start();
      };
      if (delayMs === 0) begin();
      else delayTimer = setTimeout(begin, delayMs).unref();
    },
    resolve: doubts.add,
    stop() {
      isStopped = true;
      clearTimeout(delayTimer);
      looks.stop();
      doubts.stop();
    },
    report: () => ({ intervalMs, lookedAtMs, failure }),
  };
}

function newestId(store: Store): number {
  return Number(store.get("SELECT coalesce(max(id), 0) AS id FROM deployments WHERE project = $project")?.id);
}
