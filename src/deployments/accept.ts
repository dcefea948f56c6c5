import type { Log } from "../log.ts";
import { createLogThrottle } from "../platform/log-throttle.ts";
import type { Store } from "../platform/sqlite/store.ts";
import type { Push } from "../receiver/push.ts";
import type { Deployment } from "./deployment.ts";
import type { OnSuperseded } from "./order.ts";
import { findPause } from "./pauses.ts";
import { type DeploymentRequest, type RecordedPush, recordPush, recordRequest } from "./record.ts";

/** Puts deployments into the queue of a project, and claims the next one in the same transaction if nothing runs. */
export interface Acceptor {
  /** As of the queue. */
  readonly accept: (push: Push, alongside?: () => void) => Promise<RecordedPush>;
  /** As of the queue. */
  readonly request: (request: DeploymentRequest) => Deployment;
}

export interface AcceptorOptions {
  readonly store: Store;
  /** Claims the next deployment, if one may start. Called in the transaction. */
  readonly claim: () => Deployment | null;
  /** Called when the claim is on disk. */
  readonly onClaimed: (claimed: Deployment) => void;
  /** Called if it is not. */
  readonly onUndone: () => void;
  /** Called for each deployment that was superseded, when that is on disk. */
  readonly onChange: (deploymentId: number) => void;
  /** Whether pushes may be forged: then they do not supersede what was requested. */
  readonly distrustsPushes: boolean;
  readonly log: Log;
}

/** No project is pushed to so often; a flood must not fill the disk with lines. */
const supersededPerMinute = 100;

interface WaitingPush {
  readonly push: Push;
  readonly alongside: (() => void) | undefined;
  readonly resolve: (recorded: RecordedPush) => void;
  readonly reject: (error: unknown) => void;
}

interface AcceptorState extends AcceptorOptions {
  /** The pushes of this turn of the event loop. */
  waiting: WaitingPush[];
  readonly mayLogSuperseded: (key: null) => boolean;
}

/** Makes the part of a queue that records. */
export function createAcceptor(options: AcceptorOptions): Acceptor {
  const { log } = options;
  const mayLogSuperseded = createLogThrottle<null>(supersededPerMinute, 60_000, (_, count) =>
    log.info({ event: "deployment.superseded_more", count }, `${count} more deployments were superseded`),
  );
  const state: AcceptorState = { ...options, waiting: [], mayLogSuperseded };
  return {
    accept: (push, alongside) =>
      new Promise((resolve, reject) => {
        state.waiting.push({ push, alongside, resolve, reject });
        if (state.waiting.length === 1) acceptWaiting(state).catch(reject);
      }),
    request: (request) => acceptRequest(state, request),
  };
}

async function acceptWaiting(state: AcceptorState): Promise<void> {
  let batch: readonly WaitingPush[] = [];
  const { work, onRecorded } = recording(state, (onSuperseded) => {
    batch = takeWaiting(state);
    return recordBatch(state, batch, onSuperseded);
  });
  try {
    const { result, claimed } = await state.store.batch(work);
    onRecorded(claimed);
    for (const [index, recorded] of result.entries()) batch[index]?.resolve(asClaimed(recorded, claimed));
  } catch (error) {
    state.onUndone();
    // If the work of another project failed before ours, ours has not begun.
    if (batch.length === 0) batch = takeWaiting(state);
    for (const { reject } of batch) reject(error);
  }
}

function takeWaiting(state: AcceptorState): readonly WaitingPush[] {
  const { waiting } = state;
  state.waiting = [];
  return waiting;
}

function recordBatch(
  { store, distrustsPushes }: AcceptorState,
  batch: readonly WaitingPush[],
  onSuperseded: OnSuperseded,
): readonly RecordedPush[] {
  const isPaused = findPause(store) !== null;
  return batch.map(({ push, alongside }) => {
    const recorded = recordPush(store, push, onSuperseded, distrustsPushes);
    alongside?.();
    return isPaused ? withPause(recorded) : recorded;
  });
}

function acceptRequest(state: AcceptorState, request: DeploymentRequest): Deployment {
  const { store } = state;
  const { work, onRecorded } = recording(state, (onSuperseded) =>
    recordRequest(store, request, onSuperseded),
  );
  try {
    const { result, claimed } = store.transaction(work);
    onRecorded(claimed);
    return result;
  } catch (error) {
    state.onUndone();
    throw error;
  }
}

/** Makes the work that records something and claims the next deployment. Call `onRecorded` when that is on disk. */
function recording<Result>(state: AcceptorState, write: (onSuperseded: OnSuperseded) => Result) {
  const superseded: [number, number][] = [];
  const work = () => ({
    result: write((id, by) => superseded.push([id, by])),
    claimed: state.claim(),
  });
  const onRecorded = (claimed: Deployment | null) => {
    for (const [id, by] of superseded) {
      if (state.mayLogSuperseded(null)) logSuperseded(state.log, id, by);
      state.onChange(id);
    }
    if (claimed) state.onClaimed(claimed);
  };
  return { work, onRecorded };
}

/** The sender gets the state `running` if the deployment was claimed in the same moment. */
function asClaimed(recorded: RecordedPush, claimed: Deployment | null): RecordedPush {
  if (recorded.deployment.id !== claimed?.id) return recorded;
  return { ...recorded, deployment: { ...recorded.deployment, state: "running" } };
}

function withPause(recorded: RecordedPush): RecordedPush {
  if (recorded.kind !== "accepted" || recorded.deployment.state !== "queued") return recorded;
  const detail = "The queue of this project is paused. The push is recorded, and waits until hotpush resume.";
  return { ...recorded, detail };
}

function logSuperseded(log: Log, id: number, by: number): void {
  const fields = { event: "deployment.superseded", deployment: id, by };
  log.info(fields, `Deployment ${id} is superseded by ${by}, a newer push of the branch`);
}
