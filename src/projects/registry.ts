import type { ProjectConfig, ProjectFiles } from "#config/project-files";
import { Project, type Shared } from "./project.ts";

/** The first looks at the remotes are this far apart, so that many projects do not ask at once. */
const catchUpSpreadMs = 2_000;

/** All projects of a service. It follows the files of their settings. */
export class ProjectRegistry {
  readonly #projects = new Map<string, Project>();
  readonly #shared: Shared;
  readonly #files: ProjectFiles;

  constructor(shared: Shared, files: ProjectFiles) {
    this.#shared = shared;
    this.#files = files;
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
      if (this.#shared.isLeader()) this.#lead([project]);
    }
  }

  #lead(projects: readonly Project[]): void {
    this.#recordSettings(projects);
    for (const [index, project] of projects.entries()) project.lead(index * catchUpSpreadMs);
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

  /** What is wrong with the settings of a project, by its name: its last good ones, if any, stay in force. */
  faults(): ReadonlyMap<string, string> {
    return this.#files.faults();
  }

  /** Reads the settings again now. */
  refresh(): void {
    this.#files.refresh();
  }

  /** Begins to deploy, because this instance is the leader. */
  lead(): void {
    this.#lead(this.list());
  }

  /** Waits for the running deployments, and starts no others. Pushes are still recorded. */
  async stop(): Promise<void> {
    this.#files.stop();
    const { log } = this.#shared;
    // What keeps one project from stopping keeps no other one.
    const stopped = await Promise.allSettled(this.list().map((project) => project.stop()));
    for (const one of stopped)
      if (one.status === "rejected")
        log.error({ event: "project.not_stopped", err: one.reason }, "A project did not stop as it should");
  }
}
