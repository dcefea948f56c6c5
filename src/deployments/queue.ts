import { branchOf } from "#deployments/push";
import type { Row, Store } from "#platform/sqlite";
import { type Deployment, isFinished, type Trigger } from "./deployment.ts";
import {
  cancelQueued,
  createExecutor,
  type ExecutorOptions,
  isTakenBack,
  logCancelled,
  takeBack,
} from "./execute.ts";
import { findLastGood, findRunning } from "./history.ts";
import type { DeploymentSummary, Push, PushRecord } from "./push.ts";
import {
  claimNext,
  findDeployment,
  findPause,
  hasDeployment,
  insertDeployment,
  isAfter,
  isReady,
  isUnasked,
  selectDeployments,
  transition,
} from "./store.ts";

export interface Queue {
  /** Starts to run deployments: first what an earlier service left behind, then what is queued. */
  readonly start: () => void;
  /** Records a push. Call it in a transaction, and `wake` when that is on disk. */
  readonly record: (push: Push) => PushRecord;
  /** Records a deployment that no push asked for, and starts it if nothing runs. @throws if it cannot be written to disk */
  readonly request: (request: DeploymentRequest) => Deployment;
  /** Starts what is queued, if nothing runs. */
  readonly wake: () => void;
  /** Looks soon at what waits for the git host: a signed delivery has come. */
  readonly lookSoon: () => void;
  /**
   * Ends a running deployment as its time-out would, or removes it from the queue. Its final state is `cancelled`.
   *
   * @param by who requested it, as the command reported
   * @returns false if it neither runs here nor waits
   * @throws if it cannot be written to disk: a script that runs is ended all the same
   */
  readonly cancel: (deploymentId: number, by?: string | null) => boolean;
  /** The running deployment whose new version is live and only watched, or null. */
  readonly findGuarded: () => Deployment | null;
  /** Has that deployment go back to the version before; then it fails. @throws the system's error */
  readonly goBack: (deploymentId: number) => void;
  /** Starts nothing more. Lets the running deployment go on for `graceMs`, then interrupts it. */
  readonly stop: (graceMs: number) => Promise<void>;
}

export interface QueueOptions extends Omit<ExecutorOptions, "stopping"> {
  /** Whether nothing more may be started here: the project was removed. */
  readonly isHeld: () => boolean;
  /** Makes the right to run, which projects share. */
  readonly makeTurn: (onFree: () => void) => Turn;
}

const lookIntervalMs = 1_000;

/**
 * Runs the deployments of a project one at a time, in the order of the queue. Three things make sure that only one runs:
 * this queue, the database, and the lock that a running script holds.
 */
export function createQueue(options: QueueOptions): Queue {
  const { store, isHeld, onChange, exchange, makeTurn, log } = options;
  const turn = makeTurn(wake);
  const controller = new AbortController();
  const executor = createExecutor({ ...options, stopping: controller.signal });
  let mode: "recording" | "idle" | "busy" | "stopping" = "recording";
  /** What `stop` waits for. */
  let work: Promise<void> = Promise.resolve();
  let lookTimer: NodeJS.Timeout | undefined;

  /** Nothing else starts until `task` is done. */
  function occupy(task: () => Promise<void>): void {
    mode = "busy";
    turn.hold();
    work = task().then(() => {
      turn.leave();
      if (mode !== "busy") return;
      mode = "idle";
      wake();
    });
  }

  function wake(): void {
    if (mode !== "idle") return;
    try {
      const resting = executor.resting();
      const isQueued = hasDeployment(store, isReady, JSON.stringify(resting));
      if (isHeld() || !isQueued) {
        turn.leave();
        return;
      }
      const claimed = turn.claim(() => store.transaction(() => claimNext(store, resting)));
      if (claimed) occupy(() => executor.execute(claimed));
    } catch (error) {
      turn.leave();
      log.error({ event: "store.failed", err: error }, "The queue could not be read; trying again in 1 s");
    }
  }

  function cancelWaiting(id: number, by: string | null): boolean {
    if (!store.transaction(() => cancelQueued(store, id, by))) return false;
    logCancelled(log, id);
    onChange(id, false);
    return true;
  }

  return {
    start() {
      occupy(executor.recover);
      lookTimer = setInterval(wake, lookIntervalMs).unref();
    },
    record: (push) => recordPush(store, push),
    request(request) {
      const deployment = store.transaction(() => recordRequest(store, request));
      wake();
      return deployment;
    },
    wake,
    lookSoon() {
      executor.shortenRests();
      wake();
    },
    cancel: (id, by = null) => executor.cancel(id, by) || cancelWaiting(id, by),
    findGuarded() {
      const running = findRunning(store);
      return running !== null && exchange.read(running.id).isGuarding ? running : null;
    },
    goBack(id) {
      store.transaction(() => takeBack(store, id));
      exchange.order(id, "back");
    },
    async stop(graceMs) {
      mode = "stopping";
      controller.abort();
      clearInterval(lookTimer);
      const timer = setTimeout(executor.interrupt, graceMs);
      await work;
      clearTimeout(timer);
    },
  };
}

/**
 * Records a push as a deployment. Call it in a transaction. Where its branch is, is asked when it starts. The newest push
 * of a branch waits and supersedes those that waited before it. The same delivery again makes no second deployment; if
 * the first one failed it is queued again, because "Redeliver" means "try again".
 */
export function recordPush(store: Store, push: Push): PushRecord {
  const known = store.get("SELECT * FROM deliveries WHERE project = $project AND digest = ?", push.digest);
  if (known) return recordAgain(store, known);
  const deployment = insertDeployment(store, { ...push, trigger: "push" });
  const sql = `INSERT INTO deliveries (project, digest, deployment_id, ref, commit_id, received_at_ms)
    VALUES ($project, ?, ?, ?, ?, ?)`;
  store.run(sql, push.digest, deployment.id, push.ref, push.commit, Date.now());
  supersedeWaiting(store, deployment);
  return accepted(store, deployment);
}

function accepted(store: Store, deployment: Deployment): PushRecord {
  const detail = "The queue of this project is paused. The push is recorded, and waits until hotpush resume.";
  return { kind: "accepted", deployment: summary(deployment), ...(findPause(store) && { detail }) };
}

function recordAgain(store: Store, delivery: Row): PushRecord {
  const deployment = findDeployment(store, Number(delivery.deployment_id));
  if (deployment === null) {
    // It is pruned from the history, and still must not be deployed again.
    const { deployment_id: id, ref, commit_id: commit, last_state: state } = delivery;
    const known = { id: Number(id), ref: String(ref), commit: String(commit), state: String(state) };
    return { kind: "duplicate", deployment: known, detail: duplicateDetail("succeeded") };
  }
  const refusal = whyNotAgain(store, deployment);
  if (refusal !== null) return { kind: "duplicate", deployment: summary(deployment), detail: refusal };
  const asked = "asked_after = queue_order, asked_attempts = attempts, started_at_ms = NULL";
  store.run(`UPDATE deployments SET ${asked} WHERE id = ?`, deployment.id);
  transition(store, deployment, "queued");
  return accepted(store, { ...deployment, state: "queued" });
}

/** Whoever has captured a delivery can send it again, so "try again" has an end. */
const mostAttempts = 10;

/** Why a delivery that comes again is not tried again, or null. */
function whyNotAgain(store: Store, { id, ref, state, attempts }: Deployment): string | null {
  if (!["failed", "timed_out", "cancelled"].includes(state)) return duplicateDetail(state);
  const toDeploy = `To deploy the branch, run on its server: hotpush deploy ${branchOf(ref)}`;
  if (isTakenBack(store, id)) return `Its version was live and was taken back. ${toDeploy}`;
  if (attempts >= mostAttempts) return `It was started ${attempts} times. ${toDeploy}`;
  // A captured delivery must not undo what came after it, such as a roll back.
  const last = findLastGood(store, [ref]);
  if (hasDeployment(store, `id = ? AND ${isAfter("queue_order")}`, id, last?.id ?? null)) return null;
  return `A later deployment of its branch succeeded. ${toDeploy}`;
}

/** What the sender of a push learns about a deployment. */
export function summary({ id, ref, commit, state }: Deployment): DeploymentSummary {
  return { id, ref, commit, state };
}

function duplicateDetail(state: Deployment["state"]): string {
  if (!isFinished(state)) return "This delivery is recorded already and waits or runs.";
  if (state === "superseded") return "A newer push superseded this one, so it is not deployed by itself.";
  if (state === "skipped") {
    return "Its deployment was skipped: the history says why. To deploy the branch anyway, run on its server: hotpush deploy";
  }
  return "Already deployed. A delivery is deployed only once, but the remote is asked whether the branch has moved. To deploy the same commit again, run on its server: hotpush deploy";
}

/** A deployment that no git host asked for. */
export interface DeploymentRequest {
  readonly trigger: Exclude<Trigger, "push">;
  readonly ref: string;
  readonly commit: string;
  /** Who requested it, as the command reported; null if nobody did, or the command does not know. */
  readonly requestedBy?: string | null;
  /** The images that it is for, as name@digest. */
  readonly images?: readonly string[];
}

/** Records a deployment that no push asked for, in the same queue. Call it in a transaction. */
export function recordRequest(store: Store, request: DeploymentRequest): Deployment {
  const deployment = insertDeployment(store, request);
  supersedeWaiting(store, deployment);
  return deployment;
}

/**
 * Supersedes what waits for the same branch, and gives `newest` the first of their places: no branch starves. What a person
 * has asked for is superseded only by a person: whoever can send pushes cannot take it back. New images supersede nothing: they
 * are for the commit that is live.
 */
function supersedeWaiting(store: Store, newest: Deployment): void {
  if (newest.trigger === "image") return;
  const isByPerson = newest.trigger === "manual" || newest.trigger === "rollback";
  const waits = `WHERE state IN ('queued', 'interrupted') AND project = $project AND ref = ? AND id <> ?
    ${isByPerson ? "" : `AND ${isUnasked}`}`;
  for (const waiting of selectDeployments(store, waits, newest.ref, newest.id)) {
    transition(store, waiting, "superseded", { supersededBy: newest.id });
    const sql = `UPDATE deployments SET queue_order =
      min(queue_order, (SELECT queue_order FROM deployments WHERE id = ?)) WHERE id = ?`;
    store.run(sql, waiting.id, newest.id);
  }
}

/** The right of a project to run a deployment. */
export interface Turn {
  /** Runs `claim` if the right is free and nobody waits for it longer. Null if it is not free, or nothing was claimed. */
  readonly claim: <Claimed>(claim: () => Claimed | null) => Claimed | null;
  /** Takes the right in any case: for a script that runs already. */
  readonly hold: () => void;
  /** Gives the right back, or stops waiting for it. */
  readonly leave: () => void;
}

/** The turns of all projects of a service. */
export interface Turns {
  /** Makes the turn of a project; `onFree` is called when it may try again. */
  readonly make: (onFree: () => void) => Turn;
  /**
   * Lets no further deployment start, of any project. A running script goes on.
   *
   * @param onQuiet called once, when nothing runs
   * @returns a function that ends the hold
   */
  readonly holdAll: (hold: Hold, onQuiet: () => void) => () => void;
  /** The present holds, the oldest first. */
  readonly holds: () => readonly Hold[];
}

/** Why no deployment of any project starts. It lasts as long as the command that requested it. */
export interface Hold {
  readonly sinceMs: number;
  readonly reason: string;
  /** Who requested it, as the command reported, without proof. */
  readonly heldBy: string | null;
}

/**
 * Lets at most `mostRunning` projects run at once. If several wait, the one that has waited longest is next, so a project with
 * many pushes does not keep the others waiting.
 */
export function createTurns(mostRunning: number): Turns {
  const running = new Set<Turn>();
  /** In the order in which they came. */
  const waiting = new Map<Turn, () => void>();
  const holds = new Map<Hold, () => void>();
  const mayRun = () => holds.size === 0 && running.size < mostRunning;

  function callNext(): void {
    const [turn] = mayRun() ? waiting.keys() : [];
    if (turn) setImmediate(() => waiting.get(turn)?.());
  }

  function callHolders(): void {
    if (running.size > 0) return;
    for (const [hold, onQuiet] of holds) {
      holds.set(hold, () => {});
      onQuiet();
    }
  }

  function make(onFree: () => void): Turn {
    const turn: Turn = {
      claim(claim) {
        if (running.has(turn)) return null;
        const [first = turn] = waiting.keys();
        if (!mayRun() || first !== turn) {
          waiting.set(turn, onFree);
          return null;
        }
        const claimed = claim();
        waiting.delete(turn);
        if (claimed === null) callNext();
        else turn.hold();
        return claimed;
      },
      hold() {
        running.add(turn);
      },
      leave() {
        waiting.delete(turn);
        running.delete(turn);
        callHolders();
        callNext();
      },
    };
    return turn;
  }

  return {
    make,
    holdAll(hold, onQuiet) {
      holds.set(hold, onQuiet);
      callHolders();
      return () => {
        if (holds.delete(hold)) callNext();
      };
    },
    holds: () => [...holds.keys()],
  };
}
