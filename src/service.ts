import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { accessIn } from "./access/schema.ts";
import { becomeLeader } from "./become-leader.ts";
import type { MachineSettings } from "./config/machine.ts";
import type { Environment } from "./config/settings.ts";
import { createExaminer, type Examiner } from "./control/examiner.ts";
import { numberAfter } from "./deployments/deployment.ts";
import { createEventBus } from "./deployments/events.ts";
import { createHealthCheck } from "./deployments/health.ts";
import { openDeployments } from "./deployments/schema.ts";
import { createTurns } from "./deployments/turns.ts";
import type { Log } from "./log.ts";
import type { Reconciling } from "./machine-part/reconcile.ts";
import { createNotifications } from "./notifications/notifications.ts";
import { atMost } from "./platform/at-most.ts";
import { listStatePaths, type SharedParts } from "./project-parts.ts";
import { createProjectServices } from "./project-services.ts";
import type { Projects } from "./projects/project.ts";
import { checkTools, toolsForSigners } from "./runner/check-script.ts";
import { lastLoggedId } from "./runner/log-file.ts";

/** How many remotes are asked for missed pushes at a time: each takes a git, and with it often an ssh. */
const mostLooks = 3;

export interface RunningService {
  /** null: it has no port. */
  readonly address: AddressInfo | null;
  /** Waits for the running deployments, then stops all stages. Resolves when that is done. */
  readonly close: () => Promise<void>;
}

export interface ServiceOptions {
  readonly machine: MachineSettings;
  readonly projects: Projects;
  /** Scripts get the variables on the allow-list. */
  readonly env: Environment;
  readonly log: Log;
  /** Whether pushes come from the inbox of another process, and not over a port of this one. */
  readonly takesFromInbox: boolean;
}

/**
 * Wires the stages together and starts them. Earlier accepted pushes are read before the port opens.
 *
 * @throws ProblemError if the service cannot run with these settings
 */
export async function startService(options: ServiceOptions): Promise<RunningService> {
  const { machine, projects, log } = options;
  const { statePath } = machine;
  checkTools([]);
  checkSigningTools(options);
  // A push stays in the inbox of the other process until its record is on disk.
  const store = openDeployments(statePath, { syncsBatches: !options.takesFromInbox });
  if (store.movedAsideTo) logMovedAside(store.movedAsideTo, log);
  numberAfter(store, Math.max(...listStatePaths(statePath).map(lastLoggedId)));
  const access = accessIn(statePath, log);
  const stopping = new AbortController();
  let isLeader = false;
  const turns = createTurns(machine.maxRunning);
  const notifications = createNotifications({
    ...{ store, log, stopping: stopping.signal, isLeader: () => isLeader, pageUrl: machine.pageUrl },
    findProject(name) {
      const service = services.find(name);
      return service && { ...service, settings: service.parts().settings };
    },
  });
  const shared: SharedParts = {
    ...{ machine, env: options.env, store, log },
    events: createEventBus(log),
    notifications,
    makeTurn: turns.make,
    lookInTurn: atMost(mostLooks),
    isLeader: () => isLeader,
    distrustsPushes: options.takesFromInbox,
    stopping: stopping.signal,
  };
  const services = createProjectServices(shared, projects);
  const findFault = createHealthCheck(
    store,
    (name) => services.find(name)?.parts().settings.deployTimeoutMs ?? null,
  );
  // Each role loads only what it needs.
  const inbox = options.takesFromInbox ? await import("./take-from-inbox.ts") : null;
  const { machinePath } = machine;
  const machinePart = inbox && machinePath ? await import("./keep-machine-part.ts") : null;
  const ownReceiver = inbox === null ? await import("./own-receiver.ts") : null;
  const receiving = { machine, services, findFault, stopping: stopping.signal, log };
  const receiver = (await ownReceiver?.openOwnReceiver(receiving)) ?? null;
  const address = receiver?.address ?? null;
  // Built now, so that the first push does not wait for it. Those of more projects would keep memory that few of them use.
  services.list()[0]?.parts().script().redactor();
  let keeping: Reconciling | null = null;
  const leading = becomeLeader({
    ...{ store, services, projects, turns, findFault, statePath, address, log },
    access: access.store,
    ...{ pageSocket: machine.pageSocket, pageUrl: machine.pageUrl, examiner: examinerOf(options) },
    metricsNetworks: machine.metricsNetworks,
    findMachineFaults: () => keeping?.faults() ?? [],
    ...{ events: shared.events, stopping: stopping.signal, startedAtMs: Date.now() },
    onLeading() {
      isLeader = true;
      services.lead();
      notifications.wake();
      if (machinePart && machinePath) keeping = machinePart.keepMachinePart(shared, machinePath, projects);
      return inbox?.takeFromInbox(shared, services, projects) ?? null;
    },
  });
  let closed: Promise<void> | null = null;
  const close = () => {
    closed ??= closeAll();
    return closed;
  };
  return { address, close };

  async function closeAll(): Promise<void> {
    stopping.abort();
    // Until the deployments have ended, every push is recorded, for the next service to deploy.
    await services.stop();
    await notifications.ended();
    await receiver?.close();
    // In this order: only the holder of the lock may have the control socket.
    const leadership = await leading;
    await leadership?.taking?.ended;
    for (const socket of leadership?.sockets ?? []) socket.close();
    leadership?.lock.release();
    services.close();
    access.close();
    store.close();
  }
}

/** The only project is not served without them. Of several, the others are. */
function checkSigningTools({ machine, projects, log }: ServiceOptions): void {
  for (const { name, settings } of projects.list()) {
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
function examinerOf({ machine, env }: ServiceOptions): Examiner | null {
  const known = Object.entries(env).filter(([name]) => !name.startsWith("WEBHOOK_SECRET"));
  return machine.projectsPath === null ? null : createExaminer(Object.fromEntries(known), ownMain);
}

const ownMain = join(import.meta.dirname, `main${extname(import.meta.filename)}`);

function logMovedAside(path: string, log: Log): void {
  const text = `The database was damaged and is now ${path}; the history starts again`;
  log.error({ event: "store.moved_aside", path }, text);
}
