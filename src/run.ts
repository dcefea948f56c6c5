import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { accessIn } from "./access/schema.ts";
import type { MachineSettings } from "./config/machine.ts";
import type { ProjectFiles } from "./config/project-files.ts";
import { liveMount, serverFilesAt } from "./config/server.ts";
import type { Environment } from "./config/settings.ts";
import { openControlSocket, openPageSocket } from "./control/control-socket.ts";
import { createExaminer, type Examiner } from "./control/examiner.ts";
import type { ControlSources } from "./control/route.ts";
import { numberAfter } from "./deployments/deployment.ts";
import { createEventBus } from "./deployments/events.ts";
import { createHealthCheck } from "./deployments/health.ts";
import { createTurns } from "./deployments/queue.ts";
import { openDeployments } from "./deployments/schema.ts";
import type { Log } from "./log.ts";
import { createNotifications } from "./notifications/notifications.ts";
import { atMost } from "./platform/at-most.ts";
import { type HeldLock, waitForLock } from "./platform/file-lock.ts";
import { keepTrying } from "./platform/keep-trying.ts";
import { isSystemError } from "./platform/run-command.ts";
import { listStatePaths, type Shared } from "./projects/project.ts";
import { ProjectRegistry } from "./projects/registry.ts";
import { checkTools, toolsForSigners } from "./runner/check-script.ts";
import { lastLoggedId } from "./runner/log-file.ts";
import type { Reconciling } from "./setup/reconcile.ts";

/** How many remotes are asked for missed pushes at a time: each takes a git, and with it often an ssh. */
const mostLooks = 3;

export interface RunningService {
  /** null: it has no port. */
  readonly address: AddressInfo | null;
  /** Waits for the running deployments, then stops all stages. Resolves when that is done. */
  readonly close: () => Promise<void>;
}

export interface RunOptions {
  readonly machine: MachineSettings;
  readonly files: ProjectFiles;
  /** Scripts get the variables on the allow-list. */
  readonly env: Environment;
  readonly log: Log;
  /** Whether pushes come from the inbox of another process, and not over a port of this one. */
  readonly takesFromInbox: boolean;
}

/**
 * Starts what deploys: the database, the projects, the way in which pushes come, and, once this instance is the leader of
 * those that share the state directory, the queues and the sockets.
 *
 * @throws ProblemError if the service cannot run with these settings
 */
export async function startRun(options: RunOptions): Promise<RunningService> {
  const { machine, files, env, log } = options;
  const { statePath, serverPath } = machine;
  checkTools([]);
  checkSigningTools(options);

  // A push stays in the inbox of the other process until its record is on disk.
  const store = openDeployments(statePath, { syncsBatches: !options.takesFromInbox });
  if (store.movedAsideTo) logMovedAside(store.movedAsideTo, log);
  numberAfter(store, Math.max(...listStatePaths(statePath).map(lastLoggedId)));
  const access = accessIn(statePath, log);

  const stopping = new AbortController();
  let isLeader = false;
  const events = createEventBus(log);
  const turns = createTurns(machine.maxRunning);
  const notifications = createNotifications({
    ...{ store, log, stopping: stopping.signal, isLeader: () => isLeader, pageUrl: machine.pageUrl },
    findProject: (name) => projects.find(name),
  });
  const shared: Shared = {
    ...{ machine, env, store, log, events, notifications, isLeader: () => isLeader },
    ...{ makeTurn: turns.make, lookInTurn: atMost(mostLooks) },
    stopping: stopping.signal,
  };
  const projects = new ProjectRegistry(shared, files);
  const findFault = createHealthCheck(store, (name) => projects.find(name)?.settings.deployTimeoutMs ?? null);

  // Each role loads only what it needs.
  const inbox = options.takesFromInbox ? await import("./take-from-inbox.ts") : null;
  const reconcile = inbox && serverPath ? await import("./setup/reconcile.ts") : null;
  const { connectEngine } = reconcile ? await import("./platform/docker/engine.ts") : { connectEngine: null };
  const ownReceiver = inbox === null ? await import("./own-receiver.ts") : null;
  const receiving = { machine, projects, findFault, stopping: stopping.signal, log };
  const receiver = (await ownReceiver?.openOwnReceiver(receiving)) ?? null;
  const address = receiver?.address ?? null;
  // Built now, so that the first push does not wait for it. Those of more projects would keep memory that few of them use.
  projects.list()[0]?.script().redactor();

  const leading = becomeLeader();
  let closed: Promise<void> | null = null;
  const close = () => {
    closed ??= closeAll();
    return closed;
  };
  return { address, close };

  /** @returns null if the service stopped first */
  async function becomeLeader() {
    const lock = await lockRunner(statePath, log, stopping.signal);
    if (lock === null) return null;
    isLeader = true;
    projects.lead();
    notifications.wake();
    let keeping: Reconciling | null = null;
    if (reconcile && connectEngine && serverPath) {
      const engine = connectEngine(env.DOCKER_HOST);
      const ofMachine = serverFilesAt(serverPath);
      keeping = reconcile.startReconciling({
        ...{ files: ofMachine, livePath: liveMount, engine, projects: files, log, stopping: stopping.signal },
      });
    }
    const taking = inbox?.takeFromInbox(shared, projects) ?? null;
    const sources: ControlSources = {
      ...{ store, projects, turns, events, findFault, statePath, address, taking, log },
      ...{ access: access.store, examiner: examinerOf(options), startedAtMs: Date.now() },
      ...{ pageUrl: machine.pageUrl, metricsNetworks: machine.metricsNetworks },
      findServerFaults: () => keeping?.faults() ?? [],
    };
    const sockets = [await openPageSocket(sources, machine.pageSocket), await openControlSocket(sources)];
    return { lock, taking, sockets };
  }

  async function closeAll(): Promise<void> {
    stopping.abort();
    // Until the deployments have ended, every push is recorded, for the next service to deploy.
    await projects.stop();
    await notifications.ended();
    await receiver?.close();
    // In this order: only the holder of the lock may have the control socket.
    const leadership = await leading;
    await leadership?.taking?.ended;
    for (const socket of leadership?.sockets ?? []) socket?.close();
    leadership?.lock.release();
    projects.close();
    access.close();
    store.close();
  }
}

/** Waits until this instance is the leader. @returns null if the service stopped first */
async function lockRunner(statePath: string, log: Log, signal: AbortSignal): Promise<HeldLock | null> {
  const text = "Another instance runs the deployments; this one records";
  const onWait = () => log.info({ event: "runner.waiting" }, text);
  const what = "This instance cannot find out whether it may run deployments";
  const lockOnce = () => waitForLock(join(statePath, "runner.lock"), { signal, onWait });
  return await keepTrying(lockOnce, { what, canPass: isSystemError, signal, log });
}

/** The only project is not served without them. Of several, the others are. */
function checkSigningTools({ machine, files, log }: RunOptions): void {
  for (const { name, settings } of files.list()) {
    try {
      checkTools(toolsForSigners(settings.allowedSigners, settings.repoPath));
    } catch (error) {
      if (machine.projectsPath === null) throw error;
      const text = `No push of project ${name} can be deployed: ${(error as Error).message}`;
      log.error({ event: "project.tool_missing", project: name }, text);
    }
  }
}

/** Without files of projects, their settings are in this process alone, and no child gets its secret. */
function examinerOf({ machine, env }: RunOptions): Examiner | null {
  const known = Object.entries(env).filter(([name]) => !name.startsWith("WEBHOOK_SECRET"));
  return machine.projectsPath === null ? null : createExaminer(Object.fromEntries(known), ownMain);
}

const ownMain = join(import.meta.dirname, `main${extname(import.meta.filename)}`);

function logMovedAside(path: string, log: Log): void {
  const text = `The database was damaged and is now ${path}; the history starts again`;
  log.error({ event: "store.moved_aside", path }, text);
}
