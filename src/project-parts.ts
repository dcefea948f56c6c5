import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { MachineSettings } from "./config/machine.ts";
import { machineStateAt } from "./config/machine-part.ts";
import type { ProjectSettings } from "./config/project.ts";
import { secretFingerprint } from "./config/secret.ts";
import type { Environment } from "./config/settings.ts";
import { stateDirectoryOf } from "./config/state-path.ts";
import { type CatchUp, createCatchUp } from "./deployments/catch-up.ts";
import { createSourceNote, type ReadSource } from "./deployments/checked-out.ts";
import type { RemoteHead, RolloutExchange, Runner } from "./deployments/deployment.ts";
import type { EventBus } from "./deployments/events.ts";
import { findLastDeployedCommit } from "./deployments/history.ts";
import type { Queue } from "./deployments/queue.ts";
import { createSecretUses, type SecretUses } from "./deployments/secret-uses.ts";
import { findSkipRules } from "./deployments/skips.ts";
import { noteStep } from "./deployments/steps.ts";
import type { Turn } from "./deployments/turns.ts";
import { createDryRun } from "./dry-run.ts";
import type { Log } from "./log.ts";
import type { Notifications } from "./notifications/notifications.ts";
import type { Store } from "./platform/sqlite/store.ts";
import { onlyProjectName, type Project } from "./projects/project.ts";
import { type MainRef, type Push, refsOf, type Would } from "./receiver/push.ts";
import { giveGuardOrder, removeGuardOrder } from "./rollout/guard/order.ts";
import { readDeploymentReport, removeDeploymentReport } from "./rollout/report/deployment-report.ts";
import { logScriptFault } from "./runner/check-script.ts";
import { createProjectScript, findUnredacted, type ProjectScript } from "./runner/known-secrets.ts";
import { readRemoteHead, readSource } from "./runner/repository.ts";
import { createRunner } from "./runner/runner.ts";
import { prepareScriptState } from "./runner/script-state.ts";

/** What the projects of a service share. */
export interface SharedParts {
  readonly machine: MachineSettings;
  readonly env: Environment;
  readonly store: Store;
  readonly events: EventBus;
  readonly notifications: Notifications;
  readonly makeTurn: (onFree: () => void) => Turn;
  /** Runs a look for missed pushes when it may. */
  readonly lookInTurn: (look: () => Promise<void>) => Promise<void>;
  /** Whether this instance runs deployments; another one may. */
  readonly isLeader: () => boolean;
  /** Whether pushes come from another process, which may be in an attacker's hands. */
  readonly distrustsPushes: boolean;
  readonly log: Log;
  readonly stopping: AbortSignal;
}

/** The parts of a project that depend on its settings. */
export interface ProjectParts {
  readonly settings: ProjectSettings;
  readonly refs: readonly MainRef[];
  readonly script: () => ProjectScript;
  readonly runner: Runner;
  readonly catchUp: CatchUp;
  readonly secretUses: SecretUses;
  readonly readSource: ReadSource;
  readonly exchange: RolloutExchange;
  readonly readRemoteHead: (ref: string) => Promise<RemoteHead>;
  /** The path of a directory on the host, which identifies a project in roll-outs; the same outside of a container. */
  readonly hostDirectory: (directory: string) => Promise<string>;
  readonly dryRun: (push: Push) => Promise<Would>;
}

/** What the parts of one project are made from, beside its settings. */
export interface OwnParts extends SharedParts {
  /** The project's view. */
  readonly store: Store;
  readonly statePath: string;
  readonly queue: Queue;
}

/** Makes the parts of a project from its settings as they are now. */
export function makeParts(own: OwnParts, { name, settings, scriptSecrets }: Project): ProjectParts {
  const { machine, env, store, statePath, queue, lookInTurn: inTurn, log } = own;
  const {
    repoPath,
    deployEnv,
    secrets,
    notify,
    commitStatus,
    branch,
    catchUpIntervalMs: intervalMs,
  } = settings;
  const { machineStatePath, projectsPath } = machine;
  const scriptStates = machineStatePath && machineStateAt(machineStatePath).projects;
  const scriptStatePath = scriptStates && join(scriptStates, name);
  // Both belong to this user. No project has such a name.
  const ordersPath = join(scriptStates ?? machine.statePath, ".orders");
  const runsAsOwner = projectsPath !== null;
  const sources = {
    env,
    deployEnv,
    repoPath,
    secrets,
    notify,
    commitStatus,
    scriptSecrets,
    scriptStatePath,
    ordersPath,
    runsAsOwner,
  };
  const script = createProjectScript(sources);
  const refs = refsOf(branch);
  const readSourceOf: ReadSource = (deployment, state) => readSource(script(), statePath, deployment, state);
  const readHead = (ref: string) => readRemoteHead(script(), ref);
  own.notifications.subscribe(store, settings);
  Promise.all([prepareScriptState(script(), log), logScriptFault(script(), log)]).catch((error: unknown) =>
    log.error({ event: "script.unchecked", err: error }, "The deploy script could not be checked"),
  );
  for (const text of findUnredacted(sources)) log.warn({ event: "redaction.too_short" }, text);
  const previous = secrets.previous && secretFingerprint(secrets.previous);
  const fingerprints = { current: secretFingerprint(secrets.current), previous };
  return {
    ...{ settings, refs, script, readSource: readSourceOf, readRemoteHead: readHead },
    exchange: exchangeWith(ordersPath, () => stateDirectoryOf(script().environment)),
    runner: makeRunner(own, { settings, refs, script, readSource: readSourceOf }),
    catchUp: createCatchUp({
      store,
      refs,
      readRemoteHead: readHead,
      request: queue.request,
      log,
      intervalMs,
      inTurn,
    }),
    secretUses: createSecretUses({ store, fingerprints, log }),
    hostDirectory: (directory) => hostDirectory(directory, script().environment.DOCKER_HOST),
    dryRun: createDryRun(store, script),
  };
}

function makeRunner(
  { machine, store, statePath, events, distrustsPushes, log, stopping }: OwnParts,
  { settings, refs, script, readSource }: Pick<ProjectParts, "settings" | "refs" | "script" | "readSource">,
): Runner {
  const { allowedSigners: signersPath, deployPaths: paths, deployTimeoutMs, deploySilenceMs } = settings;
  const noteSource = createSourceNote(store, readSource);
  const findLastDeployed = () => findLastDeployedCommit(store);
  const otherStatePaths = () => listStatePaths(machine.statePath).filter((path) => path !== statePath);
  return createRunner({
    ...{ script, statePath, otherStatePaths, refs, deployTimeoutMs, deploySilenceMs, log },
    tipRules: {
      ...{ paths, signersPath, distrustsPushes, findLastDeployed, stopping },
      findSkipRules: (deployment) => findSkipRules(store, deployment, distrustsPushes || paths.length > 0),
    },
    onStep(deployment, name) {
      noteStep(store, deployment, name, log);
      noteSource(deployment);
      events.publish(deployment.id, { kind: "step" });
    },
    onLine: ({ id }, line) => events.publish(id, { kind: "line", line }),
  });
}

/** @param statePath STATE_PATH of the project's scripts */
function exchangeWith(ordersPath: string, statePath: () => string): RolloutExchange {
  return {
    read: (id) => readDeploymentReport(statePath(), id),
    order: (id, order) => giveGuardOrder(ordersPath, id, order),
    tidy(id) {
      removeDeploymentReport(statePath(), id);
      removeGuardOrder(ordersPath, id);
    },
  };
}

/** Nothing in the service loads code for Docker before somebody rolls back. */
async function hostDirectory(directory: string, dockerHost: string | undefined): Promise<string> {
  const { hostDirectoryOf } = await import("./rollout/compose/locate-project.ts");
  const { connectEngine } = await import("./platform/docker/engine.ts");
  return await hostDirectoryOf(connectEngine(dockerHost), directory);
}

/** The only project keeps its logs and runs where they have always been. */
export function projectStatePath(statePath: string, name: string): string {
  return name === onlyProjectName ? statePath : join(statePath, "projects", name);
}

/** The state of all projects that ever were, also of those that are not served any more. */
export function listStatePaths(statePath: string): readonly string[] {
  const directory = join(statePath, "projects");
  const names = existsSync(directory) ? readdirSync(directory) : [];
  return [statePath, ...names.map((name) => join(directory, name))];
}
