import { findDeployment } from "../deployments/deployment.ts";
import type { ProjectService } from "../project-service.ts";
import {
  type ControlContext,
  type ControlReply,
  type ControlRequest,
  type ControlSources,
  refusal,
} from "./route.ts";

/**
 * Finds the project that a request is about: that of the deployment in its path, the one that it names, or the only one.
 *
 * @returns null if it is about all projects; a refusal if it names none that there is
 */
export function findContext(
  sources: ControlSources,
  { id, query }: Pick<ControlRequest, "id" | "query">,
): ControlContext | ControlReply | null {
  const deployment = id === null ? null : findDeployment(sources.store, id);
  const name = deployment?.project ?? query.get("project");
  const services = sources.services.list();
  if (name === null) return services.length === 1 && services[0] ? contextOf(sources, services[0]) : null;
  const service = sources.services.find(name);
  if (service) return contextOf(sources, service);
  const fault = sources.projects.faults().get(name);
  return refusal(
    404,
    fault
      ? `Project ${name} has faulty settings: ${fault}`
      : `There is no project ${name}. ${known(services)}`,
  );
}

/** A request that must name a project, and does not. */
export function mustNameProject({ services }: ControlSources): ControlReply {
  return refusal(
    400,
    `Which project? Run this in its checkout, or add --project <name>. ${known(services.list())}`,
  );
}

function known(services: readonly ProjectService[]): string {
  const names = services.map(({ name }) => name);
  return names.length === 0 ? "There are no projects yet." : `The projects are: ${names.join(", ")}.`;
}

/** The context of one project, with its settings as they are now. */
export function contextOf(sources: ControlSources, service: ProjectService): ControlContext {
  const { events, findFault, address, startedAtMs, log, statePath, taking } = sources;
  const { name: project, store, queue, statePath: logStatePath } = service;
  const { settings, refs, catchUp, secretUses, readRemoteHead, hostDirectory } = service.parts();
  return {
    ...{
      project,
      store,
      queue,
      events,
      secretUses,
      refs,
      catchUp,
      readRemoteHead,
      hostDirectory,
      findFault,
      statePath,
      logStatePath,
    },
    ...{ repoPath: settings.repoPath, address, startedAtMs, log, taking },
    isServed: service.isServed(),
    fault: sources.projects.faults().get(project) ?? null,
  };
}
