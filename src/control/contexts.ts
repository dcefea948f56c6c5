import { stat } from "node:fs/promises";
import { stateDirectoryOf } from "../config/state-path.ts";
import { findDeployment } from "../deployments/deployment.ts";
import type { Project } from "../projects/project.ts";
import {
  type ControlContext,
  type ControlReply,
  type ControlRequest,
  type ControlSources,
  refusal,
} from "./route.ts";

/**
 * Finds the project that a request is about: that of the deployment in its path, the one that it names, the one whose
 * checkout the command was called in, or the only one. If there is none, the files of the projects are read again first:
 * it may have been added just now.
 *
 * @param mustBeOne if the request is not about all projects
 * @returns null if it is about none of them alone; a refusal if it names one that is not there
 */
export async function findContext(
  sources: ControlSources,
  asked: Asked,
  mustBeOne: boolean,
): Promise<ControlContext | ControlReply | null> {
  const context = await lookUp(sources, asked);
  if (context === null ? !mustBeOne : !("kind" in context)) return context;
  sources.projects.refresh();
  return lookUp(sources, asked);
}

type Asked = Pick<ControlRequest, "id" | "query">;

async function lookUp(
  sources: ControlSources,
  { id, query }: Asked,
): Promise<ControlContext | ControlReply | null> {
  const deployment = id === null ? null : findDeployment(sources.store, id);
  const named = query.get("project");
  if (deployment !== null && named !== null && named !== deployment.project)
    return refusal(404, `Deployment ${id} is one of the project ${deployment.project}, not of ${named}.`);
  const name = deployment?.project ?? named ?? (await usualProject(sources, query.get("within")));
  if (name === null) return null;
  const project = sources.projects.find(name);
  if (project) return contextOf(sources, project);
  const fault = sources.projects.faults().get(name);
  return refusal(
    404,
    fault
      ? `Project ${name} has faulty settings: ${fault}`
      : `There is no project ${name}. ${known(sources)}`,
  );
}

/** A request that must name a project, and does not. */
export function mustNameProject(sources: ControlSources): ControlReply {
  return refusal(400, `Which project? Run this in its checkout, or add --project <name>. ${known(sources)}`);
}

function known(sources: ControlSources): string {
  const names = projectNames(sources);
  return names.length === 0 ? "There are no projects yet." : `The projects are: ${names.join(", ")}.`;
}

/** All but those that were removed while the service runs. */
function projectNames({ projects }: ControlSources): readonly string[] {
  const served = projects.list().filter(({ isServed }) => isServed);
  return [...new Set([...served.map(({ name }) => name), ...projects.faults().keys()])].sort();
}

async function usualProject(sources: ControlSources, within: string | null): Promise<string | null> {
  const [first = null, ...others] = projectNames(sources);
  if (others.length === 0) return first;
  return within === null ? null : await findAround(sources.projects, within);
}

/**
 * The project whose checkout is one of the directories in `within`, the innermost first. They are compared by device and
 * inode: a path may lead elsewhere in a container, and through links.
 */
async function findAround(projects: ControlSources["projects"], within: string): Promise<string | null> {
  const checkouts = projects.list().map(async ({ name, settings }) => {
    const stats = await stat(settings.repoPath, { bigint: true }).catch(() => null);
    return [stats && `${stats.dev}.${stats.ino}`, name] as const;
  });
  const names = new Map(await Promise.all(checkouts));
  const found = within.split("-").find((directory) => names.has(directory));
  return (found && names.get(found)) ?? null;
}

/** The context of one project, with its settings as they are now. */
export function contextOf(sources: ControlSources, project: Project): ControlContext {
  const { events, findFault, findServerFaults, address, startedAtMs, turns, log, statePath, taking } =
    sources;
  const { name, store, queue, statePath: logStatePath, settings, refs, script } = project;
  const { catchUp, secretUses, readRemoteHead } = project;
  return {
    ...{
      project: name,
      store,
      queue,
      events,
      secretUses,
      refs,
      catchUp,
      readRemoteHead,
      hostDirectory: (directory: string) => project.hostDirectory(directory),
      findFault,
      findServerFaults,
      statePath,
      logStatePath,
    },
    rolloutStatePath: stateDirectoryOf(script().environment),
    ...{ repoPath: settings.repoPath, notify: settings.notify, address, startedAtMs, turns, log, taking },
    examiner: sources.examiner,
    isServed: project.isServed,
    fault: sources.projects.faults().get(name) ?? null,
  };
}
