import type { EventEmitter } from "node:events";
import { chmodSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { ProjectSettings } from "#config/project";
import type { ProjectConfig, ProjectFiles } from "#config/project-files";
import { type SecretSlot, secretFingerprint } from "#config/secret";
import { onlyProjectName, serverStateAt, stateDirectoryOf } from "#config/server";
import type { ServiceSettings } from "#config/service";
import type { Environment } from "#config/settings";
import { type CatchUp, createCatchUp } from "#deployments/catch-up";
import { type Checks, createChecks } from "#deployments/checks";
import type { Deployment, GuardOrder } from "#deployments/deployment";
import { findFirstSeenMs, findLastDeployedCommit } from "#deployments/history";
import { setSubscribers } from "#deployments/outbox";
import { type MainRef, type Push, refsOf, shortCommit, type Would } from "#deployments/push";
import { createQueue, type Queue, type Turns } from "#deployments/queue";
import { noteSigner } from "#deployments/receipt";
import { recordPush, summary } from "#deployments/record";
import { createResolver, type Resolver } from "#deployments/resolve";
import {
  findPause,
  findRunning,
  knowSecret,
  noteSecretUse,
  noteStep,
  readSecretUse,
  type SecretUse,
} from "#deployments/store";
import { imagesFor } from "#deployments/watch-images";
import type { Log } from "#log";
import { type Notifications, subscribersOf } from "#notifications/notifications";
import { attempt, replaceFile } from "#platform/files";
import { type RemoteHead, readRemoteHead } from "#platform/git";
import type { Store } from "#platform/sqlite";
import { readDeploymentReport, removeDeploymentReport } from "#rollout/report";
import { readNewImages } from "#runner/new-images";
import { createRunner } from "#runner/runner";
import {
  checkScript,
  createProjectScript,
  logScriptFault,
  makeScriptState,
  type ProjectScript,
} from "#runner/script";

/** What the projects of a service share. */
export interface Shared {
  readonly service: ServiceSettings;
  readonly env: Environment;
  /** The whole database. */
  readonly store: Store;
  /** Says, by its number, that something has happened to a deployment: its log or the database has what. */
  readonly events: EventEmitter;
  readonly notifications: Notifications;
  readonly inTurn: Turns["run"];
  /** Runs a look for missed pushes when it may. */
  readonly lookInTurn: (look: () => Promise<void>) => Promise<void>;
  /** Whether this instance runs deployments; another one may. */
  readonly isLeader: () => boolean;
  readonly log: Log;
  readonly stopping: AbortSignal;
}

/** A repository that is deployed, through all changes of its settings. It deploys nothing before `lead` is called. */
export class Project {
  readonly name: string;
  /** The project's view of the database. */
  readonly store: Store;
  /** The directory of its logs and runs. */
  readonly statePath: string;
  readonly log: Log;
  readonly queue: Queue;
  /** Whether its settings are there; if not, nothing more is started. */
  isServed = true;
  config: ProjectConfig;
  /** What its scripts, and git in its repository, run with now. */
  script: () => ProjectScript;
  catchUp: CatchUp;
  readonly #shared: Shared;
  readonly #checks: Checks;
  readonly #resolver: Resolver;
  /** This directory and that of the orders belong to this user. No project has the name of the orders. */
  readonly #scriptStatePath: string | null;
  readonly #ordersPath: string;

  constructor(shared: Shared, config: ProjectConfig) {
    this.#shared = shared;
    this.config = config;
    this.name = config.name;
    this.store = shared.store.of(this.name);
    const { service, events, notifications, inTurn } = shared;
    const scriptStates = service.serverStatePath && serverStateAt(service.serverStatePath).projects;
    this.#scriptStatePath = scriptStates && join(scriptStates, this.name);
    this.#ordersPath = join(scriptStates ?? service.statePath, ".orders");
    this.statePath = projectStatePath(service.statePath, this.name);
    // Of the only project each line is.
    this.log = this.name === onlyProjectName ? shared.log : shared.log.child({ project: this.name });
    const { store, log, statePath } = this;
    this.#checks = createChecks({
      deployAfter: () => this.settings.deployAfter,
      pollMs: () => askEvery(this.settings, mostPollMs),
      read: async (commit, branch, signal) => {
        const { commitStatus } = this.settings;
        const fault = "COMMIT_STATUS_TOKEN_FILE is not set.";
        if (commitStatus === null) return { kind: "fault", fault, waitMs: 0 };
        // Most projects wait for no checks.
        const { readHostChecks } = await import("#notifications/host-checks");
        return await readHostChecks(commitStatus, commit, branch, signal);
      },
    });
    this.#resolver = createResolver({
      store,
      checks: this.#checks,
      checkout: () => this.script(),
      paths: () => this.settings.deployPaths,
      confirmMs: () => askEvery(this.settings),
      checkSigned: () => {
        const { allowedSigners } = this.settings;
        return allowedSigners === null ? null : this.#checkSignedBy(allowedSigners);
      },
    });
    const runner = createRunner(() => ({
      statePath,
      log,
      refs: this.refs,
      script: this.script(),
      resolve: this.#resolver.resolve,
      imagesFor: (deployment) => this.settings.deployImages && imagesFor(store, deployment),
      deployTimeoutMs: this.settings.deployTimeoutMs,
      deploySilenceMs: this.settings.deploySilenceMs,
      onStep(deployment, name) {
        noteStep(store, deployment, name, log);
        events.emit(String(deployment.id));
      },
      onLine: ({ id }) => events.emit(String(id)),
    }));
    const reports = () => stateDirectoryOf(this.script().environment);
    const ordersPath = this.#ordersPath;
    this.queue = createQueue({
      store,
      log,
      inTurn,
      askEveryMs: () => askEvery(this.settings),
      runner,
      // What the roll-out of a script reports, and is ordered.
      exchange: {
        read: (id) => readDeploymentReport(reports(), id),
        order: (id, order) => giveGuardOrder(ordersPath, id, order),
        tidy(id) {
          removeDeploymentReport(reports(), id);
          removeGuardOrder(ordersPath, id);
        },
      },
      isHeld: () => !this.isServed,
      onChange(id, isRunning) {
        events.emit(String(id));
        if (!isRunning) notifications.wake();
      },
      onStart: (deployment) => {
        const { notify, commitStatus } = this.settings;
        // With NOTIFY_ON=failures nobody is sent that a script was started.
        if (commitStatus !== null || notify.on === "all") notifications.start(store, deployment);
      },
    });
    ({ script: this.script, catchUp: this.catchUp } = this.#use(config));
  }

  get settings(): ProjectSettings {
    return this.config.settings;
  }

  /** The branches that are deployed. */
  get refs(): readonly MainRef[] {
    return refsOf(this.settings.branch);
  }

  /** Begins to deploy, because this instance is the leader. */
  lead(): void {
    this.queue.start();
    this.catchUp.start();
  }

  /** Uses new settings from now on; a script that runs keeps its own. */
  apply(config: ProjectConfig): void {
    this.catchUp.stop();
    this.config = config;
    ({ script: this.script, catchUp: this.catchUp } = this.#use(config));
    this.isServed = true;
    if (this.#shared.isLeader()) this.catchUp.start();
    this.queue.wake();
  }

  /** Starts nothing more until there are settings again. */
  remove(): void {
    this.isServed = false;
    this.catchUp.stop();
  }

  /** Waits for its running deployment, and starts no other. Pushes are still recorded. */
  async stop(): Promise<void> {
    this.catchUp.stop();
    await this.queue.stop(this.#shared.service.shutdownGraceMs);
  }

  /** What recording the push would do, and whether its script could start. Nothing is recorded. */
  async dryRun(push: Push): Promise<Would> {
    const { store } = this;
    const running = findRunning(store);
    const recorded = store.transaction(() => {
      store.run("SAVEPOINT before");
      const made = recordPush(store, push);
      store.run("ROLLBACK TO before");
      return made;
    });
    if (recorded.kind === "duplicate")
      return { duplicate: { deployment: recorded.deployment, detail: recorded.detail } };
    const problem = await checkScript(this.script());
    if (problem) return { fail: problem };
    const { ref, commit } = recorded.deployment;
    if (findPause(store) !== null) return { deploy: { ref, commit, when: "resumed" } };
    if (running) return { deploy: { ref, commit, when: "after", after: summary(running) } };
    return { deploy: { ref, commit, when: "now" } };
  }

  /** Records whom its settings name for reports, and since when its secrets are known. Call it in a transaction. */
  recordSettings(): void {
    setSubscribers(this.store, subscribersOf(this.settings));
    const { current, previous } = this.#fingerprints();
    for (const one of [current, previous]) if (one !== null) knowSecret(this.store, one);
  }

  /** Records that a secret has signed a delivery. Call it in a transaction. */
  noteSecretUse(slot: SecretSlot, use: Pick<SecretUse, "host" | "deliveryId">): void {
    const fingerprint = this.#fingerprints()[slot];
    if (fingerprint !== null) noteSecretUse(this.store, fingerprint, use);
  }

  /**
   * Looks at the checks of what waits for them: a signed delivery has come, and any may mean that one has ended. Without DEPLOY_AFTER
   * nothing waits for them.
   */
  lookSoon(): void {
    this.queue.lookSoon();
    for (const ref of this.#checks.givenUp()) this.catchUp.look(ref);
  }

  /** The evidence for finishing a rotation; null if there is no previous secret. */
  secretUses(): { readonly current: SecretUse; readonly previous: SecretUse | null } {
    const { current, previous } = this.#fingerprints();
    const useOf = (fingerprint: string) => readSecretUse(this.store, fingerprint);
    return { current: useOf(current), previous: previous === null ? null : useOf(previous) };
  }

  /** Where a branch is at the remote. */
  readonly readRemoteHead = (ref: string): Promise<RemoteHead> => readRemoteHead(this.script(), ref);

  /**
   * The path of a directory on the host, which identifies a project in roll-outs; the same outside of a container. Nothing
   * in the service loads code for Docker before somebody rolls back.
   */
  async hostDirectory(directory: string): Promise<string> {
    const { hostDirectoryOf } = await import("#rollout/locate-project");
    const { connectEngine } = await import("#platform/docker/engine");
    return await hostDirectoryOf(connectEngine(this.script().environment.DOCKER_HOST), directory);
  }

  #checkSignedBy(signersPath: string) {
    const { store, log, statePath } = this;
    return async (deployment: Deployment, commit: string, signal: AbortSignal) => {
      // Most projects need no signatures, so this is loaded with the first deployment that needs one.
      const { checkSigned } = await import("#runner/signatures");
      const onVerified = (signer: string) => {
        const fields = { event: "deployment.verified", deployment: deployment.id, commit, signer };
        log.info(fields, `Commit ${shortCommit(commit)} is signed by ${signer}`);
        store.transaction(() => noteSigner(store, deployment.id, signer));
      };
      const options = {
        signersPath,
        findLastDeployed: () => findLastDeployedCommit(store),
        findFirstSeenMs: (id: string) => findFirstSeenMs(store, deployment.ref, id),
        script: this.script(),
        statePath,
        signal,
        onVerified,
      };
      return await checkSigned(options, deployment, commit);
    };
  }

  #fingerprints() {
    const { current, previous } = this.settings.secrets;
    return { current: secretFingerprint(current), previous: previous && secretFingerprint(previous) };
  }

  /** Makes what depends on the settings. */
  #use({ settings, scriptSecrets, secretCommands }: ProjectConfig): Pick<Project, "script" | "catchUp"> {
    const { store, log, queue, readRemoteHead } = this;
    const { service, env, lookInTurn: inTurn } = this.#shared;
    const script = createProjectScript({
      ...settings,
      env,
      scriptSecrets,
      secretCommands,
      scriptStatePath: this.#scriptStatePath,
      ordersPath: this.#ordersPath,
      runsAsOwner: service.projectsPath !== null,
    });
    Promise.try(() => {
      // Now, so that a roll-out by hand before the first deployment finds it.
      makeScriptState(script());
      return logScriptFault(script(), log);
    }).catch((error: unknown) =>
      log.error({ event: "script.unchecked", err: error }, "The deploy script could not be checked"),
    );
    const catchUp = createCatchUp({
      store,
      log,
      refs: this.refs,
      readRemoteHead,
      inTurn,
      intervalMs: settings.catchUpIntervalMs,
      request: queue.request,
      judgeHead: this.#resolver.judgeHead,
      readNewImages: settings.deployImages && (() => readNewImages(script(), this.#shared.stopping)),
      askEveryMs: askEvery(settings),
    });
    return { script, catchUp };
  }
}

const mostAskEveryMs = 10_000;
/** Checks take minutes, and deliveries say when they end. */
const mostPollMs = 30_000;

/** How often the remote is asked about a head that may be an old one, or the host about its checks. */
function askEvery({ catchUpIntervalMs }: ProjectSettings, mostMs = mostAskEveryMs): number {
  return catchUpIntervalMs === 0 ? mostMs : Math.min(mostMs, catchUpIntervalMs);
}

/** The only project keeps its logs and runs in the state directory itself. */
function projectStatePath(statePath: string, name: string): string {
  return name === onlyProjectName ? statePath : join(statePath, "projects", name);
}

/** The state of all projects that ever were, also of those that are not served any more. */
export function listStatePaths(statePath: string): readonly string[] {
  const directory = join(statePath, "projects");
  return [statePath, ...attempt(() => readdirSync(directory), []).map((name) => join(directory, name))];
}

/** All projects of a service. It follows the files of their settings. */
export class ProjectRegistry {
  /** What is wrong with the settings of a project, by its name: its last good ones, if any, stay in force. */
  readonly faults: ProjectFiles["faults"];
  /** Reads the settings again now. */
  readonly refresh: ProjectFiles["refresh"];
  readonly #projects = new Map<string, Project>();
  readonly #shared: Shared;
  readonly #files: ProjectFiles;

  constructor(shared: Shared, files: ProjectFiles) {
    this.#shared = shared;
    this.#files = files;
    this.faults = files.faults;
    this.refresh = files.refresh;
    for (const config of files.list()) this.#apply(config.name, config);
    files.watch((names) => {
      for (const name of names) this.#apply(name, files.find(name));
    });
  }

  #apply(name: string, config: ProjectConfig | null): void {
    const known = this.#projects.get(name);
    if (config === null) known?.remove();
    else if (known) {
      known.apply(config);
      if (this.#shared.isLeader()) this.#recordSettings([known]);
    } else {
      const project = new Project(this.#shared, config);
      this.#projects.set(name, project);
      if (this.#shared.isLeader()) this.lead([project]);
    }
  }

  /** All in one transaction: each waits for the disk. A fault of the database must not keep them from being deployed. */
  #recordSettings(projects: readonly Project[]): void {
    const { store, log } = this.#shared;
    try {
      store.transaction(() => {
        for (const project of projects) project.recordSettings();
      });
    } catch (error) {
      log.error({ event: "store.failed", err: error }, "The settings of projects could not be recorded");
    }
  }

  /** By name, also those whose settings were removed while this runs. */
  list(): readonly Project[] {
    return [...this.#projects.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
  }

  find(name: string): Project | null {
    return this.#projects.get(name) ?? null;
  }

  /** Begins to deploy, because this instance is the leader. */
  lead(projects: readonly Project[] = this.list()): void {
    this.#recordSettings(projects);
    for (const project of projects) project.lead();
  }

  /** Waits for the running deployments, and starts no others. Pushes are still recorded. */
  async stop(): Promise<void> {
    this.#files.stop();
    await Promise.all(this.list().map((project) => project.stop()));
  }
}

/**
 * Gives an order to the roll-out of a deployment.
 *
 * @param ordersPath a directory of the service: it is made, and users of scripts may pass through it and read
 * @throws the system's error
 */
export function giveGuardOrder(ordersPath: string, deploymentId: number, order: GuardOrder): void {
  if (mkdirSync(ordersPath, { recursive: true }) !== undefined) chmodSync(ordersPath, 0o711);
  replaceFile(join(ordersPath, String(deploymentId)), order, { mode: 0o644, owner: null });
}

/** Removes an order that nobody needs any more. */
export function removeGuardOrder(ordersPath: string, deploymentId: number): void {
  rmSync(join(ordersPath, String(deploymentId)), { force: true });
}
