import { constants, existsSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { projectNames } from "#config/project-files";
import {
  isProjectName,
  newServerStatePath,
  type ServerFiles,
  type ServerState,
  serverComposeProject,
  serverFilesAt,
  serverPathOf,
  serverServices,
  serverStateAt,
} from "#config/server";
import type { Environment } from "#config/settings";
import { parseEnvFile } from "#platform/env-file";
import { attempt, isAllowed } from "#platform/files";
import { CommandError } from "#problems";

/** The server, as a command on the machine finds it. */
export interface Server {
  readonly files: ServerFiles;
  readonly state: ServerState;
  /** The variables of its .env. */
  readonly env: Environment;
}

/** As compose calls the container of `run`. */
export const runContainer = `${serverComposeProject}-${serverServices.run}-1`;

/** A project of the server, and the variables of its file. */
export interface ServerProject {
  readonly name: string;
  readonly file: string;
  readonly env: Environment;
}

/** Finds the server on this machine. */
export function findServer(env: NodeJS.ProcessEnv): Server | null {
  const server = serverAt(env);
  return existsSync(server.files.composeFile) ? server : null;
}

/** Where the server is, or will be. */
export function serverAt(env: NodeJS.ProcessEnv): Server {
  const files = serverFilesAt(serverPathOf(env));
  const own = readVariables(files.envFile) ?? {};
  return { files, state: serverStateAt(own.STATE_PATH || newServerStatePath(env)), env: own };
}

/**
 * The project that a command is about, for one that changes or uses its file: the named one, else that of `directory`.
 *
 * @returns null if the directory is in no checkout of the server
 * @throws CommandError if there is no project with this name, or this user may not read the projects
 */
export function chooseProject(
  server: Server,
  directory: string,
  name: string | undefined,
): ServerProject | null {
  const project = name === undefined ? findProjectAround(server, directory) : findServerProject(server, name);
  if (project !== null) return project;
  const { projectsPath } = server.files;
  if (!isAllowed(projectsPath, constants.R_OK | constants.X_OK))
    throw new CommandError(
      `The projects in ${projectsPath} cannot be read. Run this with sudo, or correct PROJECTS_PATH.`,
    );
  if (name === undefined) return null;
  const names = listServerProjects(server).map((one) => one.name);
  throw new CommandError(
    `There is no project ${name} in ${projectsPath}. The projects are: ${names.toSorted().join(", ") || "none"}.`,
  );
}

/** The same, of a service that may also be set up by hand: PROJECTS_PATH alone describes another one than the server's. */
export function chooseAnyProject(env: NodeJS.ProcessEnv, directory: string, name: string | undefined) {
  const server = env.PROJECTS_PATH && !env.SERVER_PATH ? null : findServer(env);
  const { files, ...rest } = serverAt(env);
  const projectsPath = server?.files.projectsPath ?? env.PROJECTS_PATH;
  const at = projectsPath && { ...rest, files: { ...files, projectsPath } };
  return { server, project: at ? chooseProject(at, directory, name) : null };
}

/** The project with this name, or null if there is none, or this user may not read it. */
export function findServerProject({ files }: Server, name: string): ServerProject | null {
  const file = join(files.projectsPath, `${name}.env`);
  const env = isProjectName(name) ? readVariables(file) : null;
  return env && { name, file, env };
}

/** The projects that this user may read. */
export function listServerProjects(server: Server): readonly ServerProject[] {
  const names = attempt(() => projectNames(server.files.projectsPath), []);
  return names.flatMap((name) => findServerProject(server, name) ?? []);
}

/** The project whose checkout `directory` is in; null if it is in none, or this user may not read the projects. */
export function findProjectAround(server: Server, directory: string): ServerProject | null {
  const inside = `${real(directory)}/`;
  const checkoutOf = ({ env }: ServerProject) => `${real(env.REPO_PATH || "-")}/`;
  const around = listServerProjects(server).filter((one) => inside.startsWith(checkoutOf(one)));
  // The innermost has the longest path.
  return around.toSorted((a, b) => checkoutOf(b).length - checkoutOf(a).length)[0] ?? null;
}

/** The files of removed projects: they have secrets in them, which nobody may lose by mistake. */
export function removedFiles({ path }: ServerFiles): ServerFiles {
  return serverFilesAt(join(path, "removed"));
}

function readVariables(path: string): Environment | null {
  return attempt(() => parseEnvFile(readFileSync(path, "utf8")), null);
}

/** The nearest name that a project may have or, with 63 characters, a label of a host name: `Web_UI` becomes `web-ui`. */
export function asName(text: string, mostCharacters = 39): string {
  const plain = text.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  return plain.replace(/^-/, "").slice(0, mostCharacters).replace(/-$/, "");
}

/** The path without links; as it is if it is not there. */
export function real(path: string): string {
  return attempt(() => realpathSync(path), path);
}
