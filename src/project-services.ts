import type { SharedParts } from "./project-parts.ts";
import { createProjectService, type ProjectService } from "./project-service.ts";
import type { Project, Projects } from "./projects/project.ts";

/** What runs the deployments of all projects. */
export interface ProjectServices {
  /** By name, also those whose settings were removed while this runs. */
  readonly list: () => readonly ProjectService[];
  readonly find: (name: string) => ProjectService | null;
  /** Begins to deploy, because this instance is the leader. */
  readonly lead: () => void;
  readonly stop: () => Promise<void>;
  readonly close: () => void;
}

/** The first looks at the remotes are this far apart, so that many projects do not ask at once. */
const catchUpSpreadMs = 2_000;

/** Makes the service of each project, and follows their settings. */
export function createProjectServices(shared: SharedParts, projects: Projects): ProjectServices {
  const services = new Map<string, ProjectService>();

  function add(name: string): void {
    const project = projects.find(name);
    const service = services.get(name);
    if (project === null) service?.remove();
    else if (service) service.apply(project);
    else create(project);
  }

  function create(project: Project): void {
    const service = createProjectService(shared, project);
    services.set(project.name, service);
    if (shared.isLeader()) service.lead(0);
  }

  for (const { name } of projects.list()) add(name);
  projects.watch((names) => names.forEach(add));
  const list = () => [...services.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
  return {
    list,
    find: (name) => services.get(name) ?? null,
    lead() {
      for (const [index, service] of list().entries()) service.lead(index * catchUpSpreadMs);
    },
    async stop() {
      projects.stop();
      await Promise.all(list().map((service) => service.stop()));
    },
    close() {
      for (const service of list()) service.close();
    },
  };
}
