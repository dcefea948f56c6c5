import { EventEmitter } from "node:events";
import { join } from "node:path";
import type { ServiceContext } from "#calls/context";
import { openSocket } from "#calls/sockets";
import type { ProjectFiles } from "#config/project-files";
import { liveMount, operatorSocketPath, serverFilesAt } from "#config/server";
import type { ServiceSettings } from "#config/service";
import type { Environment } from "#config/settings";
import { listRunning } from "#deployments/history";
import { createTurns } from "#deployments/queue";
import { numberAfter, openDeployments } from "#deployments/store";
import { createNotifications, senderTo } from "#notifications/notifications";
import { atMost, checkAtMostEvery, keepTrying } from "#platform/async";
import { openFile } from "#platform/files";
import { flock } from "#platform/run-command";
import { canWrite, type Store } from "#platform/sqlite";
import { listStatePaths, ProjectRegistry, type Shared } from "#projects/project";
import { takePushes } from "#projects/take-pushes";
import { lastLoggedId } from "#runner/log-file";
import { checkTools } from "#runner/script";
import type { Log } from "./log.ts";

/** How many remotes are asked for missed pushes at a time: each takes a git, and with it often an ssh. */
const mostLooks = 3;

interface RunOptions {
  readonly service: ServiceSettings;
  readonly files: ProjectFiles;
  /** Scripts get the variables on the allow-list. */
  readonly env: Environment;
  readonly log: Log;
  /** Whether `front` is another process, which may be in an attacker's hands. */
  readonly isSplit: boolean;
  /** The webhook's address, if it is in this process and listens. */
  readonly address: () => { readonly address: string; readonly port: number } | null;
  /** Aborted when the service stops. */
  readonly stopping: AbortSignal;
}

/**
 * Starts what deploys: the database, the projects, and, once this instance is the leader of those that share the state
 * directory, the queues, the spool's reader and the sockets. Resolves when it leads, or another instance does.
 *
 * @throws ProblemError if the service cannot run with these settings
 */
export async function startRun(options: RunOptions) {
  const { service, files, env, log, stopping, isSplit } = options;
  const { statePath, serverPath } = service;
  checkTools();

  const store = openDeployments(statePath);
  if (store.movedAsideTo) {
    const text = `The database was damaged, or made by a version that was never released, and is now ${store.movedAsideTo}; the history starts again, everybody has to sign in again, and what waited is lost. Missed pushes are found only after the next deployment: run hotpush deploy for each project`;
    log.error({ event: "store.moved_aside", path: store.movedAsideTo }, text);
  }
  numberAfter(store, Math.max(...listStatePaths(statePath).map(lastLoggedId)));
  const waiting = Promise.withResolvers<void>();
  // Taken by a program, while this process reads on.
  const locking = lockRunner();

  let isLeader = false;
  const events = new EventEmitter().setMaxListeners(0);
  const turns = createTurns(service.maxRunning);
  const notifications = createNotifications({
    store,
    log,
    stopping,
    isLeader: () => isLeader,
    findSend({ project: name, subscriber }) {
      const project = projects.find(name);
      return project && senderTo(project, subscriber, service.pageUrl);
    },
  });
  const shared: Shared = {
    service,
    env,
    store,
    log,
    events,
    notifications,
    isLeader: () => isLeader,
    inTurn: turns.run,
    lookInTurn: atMost(mostLooks),
    stopping,
  };
  const projects = new ProjectRegistry(shared, files);
  const timeoutMsOf = (name: string) => projects.find(name)?.settings.deployTimeoutMs ?? null;
  const checkHealth = createHealthCheck(store, timeoutMsOf);
  /** What is wrong with it, or null. */
  const findFault = () => (stopping.aborted ? "The service is stopping." : checkHealth());

  const leading = becomeLeader();
  await Promise.race([leading, waiting.promise]);
  return { findFault, stop, close };

  /** @returns null if the service stopped first */
  async function becomeLeader() {
    const lock = await locking;
    if (lock === null) return null;
    isLeader = true;
    projects.lead();
    notifications.wake();
    const keeping = isSplit && serverPath !== null ? await keepServer(serverPath) : null;
    const inbox = takePushes(shared, projects, isSplit);
    const sources: ServiceContext = {
      ...shared,
      projects,
      turns,
      inbox,
      findFault,
      findServerFaults: () => keeping?.faults() ?? [],
      startedAtMs: Date.now(),
      isSplit,
      address: options.address,
    };
    const sockets = [
      await openSocket(sources, "front", service.frontSocket),
      await openSocket(sources, "operator", operatorSocketPath(statePath)),
    ];
    return { lock, inbox, sockets };
  }

  /** Each role loads only what it needs. */
  async function keepServer(path: string) {
    const { startReconciling } = await import("#setup/reconcile");
    const { connectEngine } = await import("#platform/docker/engine");
    const engine = connectEngine(env.DOCKER_HOST);
    const livePath = liveMount;
    return startReconciling({ files: serverFilesAt(path), livePath, projects: files, log, stopping, engine });
  }

  /**
   * Waits for the right to run deployments. The kernel gives it to another instance when its holder dies, however it dies.
   *
   * @returns null if the service stopped first
   */
  async function lockRunner(): Promise<DisposableStack | null> {
    const what = "This instance cannot find out whether it may run deployments";
    const lockOnce = async () => {
      using onFailure = new DisposableStack();
      const { fd } = onFailure.use(openFile(join(statePath, "runner.lock"), "a"));
      if (!(await flock(fd, { waitS: 0 }))) {
        log.info({ event: "runner.waiting" }, "Another instance runs the deployments; this one records");
        waiting.resolve();
        await flock(fd, { waitS: null, signal: stopping });
      }
      return stopping.aborted ? null : onFailure.move();
    };
    return await keepTrying(lockOnce, { what, signal: stopping, log });
  }

  /** Waits for the running deployments, and starts no others. Pushes are still recorded, for the next service to deploy. */
  async function stop(): Promise<void> {
    await projects.stop();
    await notifications.ended();
  }

  /** Gives the lock back. Call it once no more pushes come from this process. */
  async function close(): Promise<void> {
    // In this order: only the holder of the lock may have the control socket.
    const leadership = await leading;
    await leadership?.inbox.ended;
    for (const socket of leadership?.sockets ?? []) socket?.close();
    leadership?.lock.dispose();
    store.close();
  }
}

/**
 * Makes the check behind /health: the database can be written and no run is far past its time-out. A failed deployment
 * does not make the service unhealthy, because a restart would not help.
 *
 * @param options.probeIntervalMs the database is probed at most this often
 * @param options.overdueMs a run is ended at its time-out: if it is still there this much later, the service is at fault
 * @param timeoutMsOf null for a project without settings: nothing can be done about what it runs
 * @returns a function that returns the fault, or null
 */
export function createHealthCheck(
  store: Store,
  timeoutMsOf: (project: string) => number | null,
  { probeIntervalMs, overdueMs } = { probeIntervalMs: 5_000, overdueMs: 5 * 60_000 },
): () => string | null {
  // Since when this process has seen the run, not since when the record says it runs: wall clocks jump.
  let seenSinceMs: ReadonlyMap<string, number> = new Map();

  function isOverdue(): boolean {
    const nowMs = performance.now();
    const before = seenSinceMs;
    const runs = new Map(listRunning(store).map((run) => [`${run.id} ${run.attempts}`, run.project]));
    seenSinceMs = new Map(Array.from(runs.keys(), (key) => [key, before.get(key) ?? nowMs]));
    return [...runs].some(([key, project]) => {
      const timeoutMs = timeoutMsOf(project);
      return timeoutMs !== null && nowMs - (seenSinceMs.get(key) ?? nowMs) > timeoutMs + overdueMs;
    });
  }

  return checkAtMostEvery(probeIntervalMs, () => {
    if (!canWrite(store)) return "The database cannot be written. The log of the service says more.";
    return isOverdue() ? "A deployment is far past its time-out. The log of the service says more." : null;
  });
}
