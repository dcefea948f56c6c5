import { stat } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import type { Visitor } from "#access/visitors";
import type { Turns } from "#deployments/queue";
import { findDeployment } from "#deployments/store";
import type { Project, Shared } from "#projects/project";
import type { ProjectRegistry } from "#projects/registry";
import type { Taking } from "#projects/take-pushes";
import { refuse } from "./table.ts";

/** What the handlers of calls need of the service. */
export interface ServerContext extends Pick<Shared, "service" | "store" | "events" | "log"> {
  /** What is wrong with the service, or null. */
  readonly findFault: () => string | null;
  /** What is wrong with the server; nothing without one. */
  readonly findServerFaults: () => readonly string[];
  /** The webhook's; null: it does not listen in this process. */
  readonly address: () => { readonly address: string; readonly port: number } | null;
  readonly startedAtMs: number;
  /** Who may run a deployment, of all projects. */
  readonly turns: Pick<Turns, "holdAll" | "holds">;
  readonly taking: Taking;
  /** Whether `front` is another process. */
  readonly isSplit: boolean;
  readonly projects: ProjectRegistry;
}

/** Who calls. */
export interface Caller {
  /** null: somebody with the operator's socket, `front` itself, or somebody who signs in. */
  readonly visitor: Visitor | null;
  /** The name for the record: proven by a credential, or as a command reports it. */
  readonly name: string | null;
  /** Where the visitor is, as the page reports it. */
  readonly address: string | null;
  readonly agent: string | null;
}

/** An answer that is text, or goes on. */
export interface Stream {
  readonly kind: "stream";
  readonly type: string;
  /** Resolves when nothing that it does can fail any more but what has its own place for faults. */
  readonly write: (response: ServerResponse) => void | Promise<void>;
}

export interface Whose {
  readonly id?: number | "latest" | undefined;
  readonly project?: string | undefined;
  readonly within?: string | undefined;
}

/**
 * Finds the project that a call is about: that of the deployment in its path, the one that it names, the one whose checkout
 * the command was called in, or the only one. If there is none, the files of the projects are read again first: it may have
 * been added just now.
 *
 * @returns null if it is about none of them alone
 * @throws ProblemError if there is none
 */
export async function findProject(server: ServerContext, whose: Whose): Promise<Project | null> {
  return await lookUp(server, whose).catch(() => {
    server.projects.refresh();
    return lookUp(server, whose);
  });
}

async function lookUp(server: ServerContext, whose: Whose): Promise<Project | null> {
  const { id = "latest", within } = whose;
  const named = whose.project === "_" ? undefined : whose.project;
  const deployment = id === "latest" ? null : findDeployment(server.store, id);
  if (deployment !== null && named !== undefined && named !== deployment.project)
    refuse("not_found", `Deployment ${id} is one of the project ${deployment.project}, not of ${named}.`);
  const name = deployment?.project ?? named ?? (await usualProject(server, within));
  if (name === null) return id === "latest" ? null : noDeployment(id);
  const fault = server.projects.faults().get(name);
  const absent = fault ? `Project ${name} has faulty settings: ${fault}` : `There is no project ${name}.`;
  return server.projects.find(name) ?? refuse("not_found", `${absent} ${knownProjects(server)}`);
}

export function noDeployment(id: number | "latest"): never {
  refuse(
    "not_found",
    id === "latest"
      ? "Nothing was deployed yet. Push to main, or run: hotpush deploy"
      : `There is no deployment ${id}; it may have been pruned. See: hotpush history`,
  );
}

export function knownProjects(server: ServerContext): string {
  const names = projectNames(server);
  return names.length === 0 ? "There are no projects yet." : `The projects are: ${names.join(", ")}.`;
}

/** All but those that were removed while the service runs. */
function projectNames({ projects }: ServerContext): readonly string[] {
  const served = projects.list().filter(({ isServed }) => isServed);
  return [...new Set([...served.map(({ name }) => name), ...projects.faults().keys()])].sort();
}

/**
 * The only project, else the one whose checkout is one of the directories in `within`, the innermost first. They are compared
 * by device and inode: a path may lead elsewhere in a container, and through links.
 */
async function usualProject(server: ServerContext, within: string | undefined): Promise<string | null> {
  const [first = null, ...others] = projectNames(server);
  if (others.length === 0 || within === undefined) return others.length === 0 ? first : null;
  const checkouts = server.projects.list().map(async ({ name, settings }) => {
    const stats = await stat(settings.repoPath, { bigint: true }).catch(() => null);
    return [stats && `${stats.dev}.${stats.ino}`, name] as const;
  });
  const names = new Map(await Promise.all(checkouts));
  const found = within.split("-").find((directory) => names.has(directory));
  return (found && names.get(found)) ?? null;
}
