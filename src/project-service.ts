import { createQueue, type Queue } from "./deployments/queue.ts";
import type { RecordedPush } from "./deployments/record.ts";
import type { Store } from "./platform/sqlite/store.ts";
import { makeParts, type ProjectParts, projectStatePath, type SharedParts } from "./project-parts.ts";
import { onlyProjectName, type Project } from "./projects/project.ts";
import type { Push } from "./receiver/push.ts";

/** What runs the deployments of one project, through all changes of its settings. */
export interface ProjectService {
  readonly name: string;
  readonly store: Store;
  /** The directory of its logs and runs. */
  readonly statePath: string;
  readonly queue: Queue;
  /** What depends on its settings, as they are now. */
  readonly parts: () => ProjectParts;
  /** Whether its settings are there; if not, nothing more is started. */
  readonly isServed: () => boolean;
  readonly accept: (push: Push, alongside?: () => void) => Promise<RecordedPush>;
  /**
   * Begins to deploy, because this instance is the leader.
   *
   * @param catchUpDelayMs when to look for missed pushes first
   */
  readonly lead: (catchUpDelayMs: number) => void;
  /** Uses new settings from now on; a script that runs keeps its own. */
  readonly apply: (project: Project) => void;
  /** Starts nothing more until there are settings again. */
  readonly remove: () => void;
  /** Waits for its running deployment, and starts no other. Pushes are still recorded. */
  readonly stop: () => Promise<void>;
  /** Writes what is not yet on disk of the pushes. Call it when no more can come. */
  readonly close: () => void;
}

/** Makes the service of a project. It deploys nothing before `lead` is called. */
export function createProjectService(shared: SharedParts, project: Project): ProjectService {
  const { machine, events, notifications, isLeader, makeTurn, distrustsPushes } = shared;
  const { name } = project;
  // Of the only project each line is.
  const log = name === onlyProjectName ? shared.log : shared.log.child({ project: name });
  const store = shared.store.of(name);
  const statePath = projectStatePath(machine.statePath, name);
  let isServed = true;
  const queue = createQueue({
    ...{ store, log, makeTurn, distrustsPushes },
    runner: {
      start: (deployment) => parts.runner.start(deployment),
      adopt: (deployment) => parts.runner.adopt(deployment),
      tidy: (id) => parts.runner.tidy(id),
    },
    readSource: (deployment, state) => parts.readSource(deployment, state),
    exchange: {
      read: (id) => parts.exchange.read(id),
      order: (id, order) => parts.exchange.order(id, order),
      tidy: (id) => parts.exchange.tidy(id),
    },
    isHeld: () => !isServed,
    onChange(id) {
      events.publish(id, { kind: "changed" });
      notifications.wake();
    },
    onStart: (deployment) => notifications.start(store, deployment),
  });
  const own = { ...shared, store, statePath, queue, log };
  let parts = makeParts(own, project);

  function startParts(catchUpDelayMs: number): void {
    parts.catchUp.start(catchUpDelayMs);
    parts.secretUses.begin();
  }

  function stopParts(): void {
    parts.catchUp.stop();
    parts.secretUses.close();
  }

  return {
    ...{ name, store, statePath, queue },
    parts: () => parts,
    isServed: () => isServed,
    async accept(push, alongside) {
      const recorded = await queue.accept(push, alongside);
      if (recorded.doubt) parts.catchUp.resolve(recorded.doubt);
      return recorded;
    },
    lead(catchUpDelayMs) {
      queue.start();
      startParts(catchUpDelayMs);
    },
    apply(changed) {
      stopParts();
      parts = makeParts(own, changed);
      isServed = true;
      if (isLeader()) startParts(0);
      queue.wake();
    },
    remove() {
      isServed = false;
      stopParts();
    },
    async stop() {
      parts.catchUp.stop();
      await queue.stop(machine.shutdownGraceMs);
    },
    close: () => parts.secretUses.close(),
  };
}
