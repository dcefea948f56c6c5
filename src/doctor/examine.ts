import { realpathSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { machineVariables } from "../config/settings.ts";
import { findMachinePart, hasOwnHotpush, type MachinePart } from "../machine-part/find.ts";
import { CommandError } from "../problems.ts";
import { isProjectName } from "../projects/project.ts";
import { projectNames } from "../projects/project-files.ts";
import { readProjectFile } from "../projects/read-project-file.ts";
import { type Check, type CheckReport, checks, checksAbout, runChecks } from "./checks.ts";
import { type DoctorContext, makeDoctorContext } from "./context.ts";
import { readSettings, type Settings } from "./settings.ts";

export interface Examination {
  readonly env: NodeJS.ProcessEnv;
  /** The file with the service's settings, if a person has named it. */
  readonly envFile: string | undefined;
  /** The webhook's address from the command line, or null. */
  readonly url: string | null;
  /** The only project to check; null: that of `directory`, else all. */
  readonly project: string | null;
  readonly isAll: boolean;
  readonly directory: string;
}

/** Each runs a dozen programs. */
const mostAtOnce = 4;

/**
 * Runs the chosen checks: of the service and, with PROJECTS_PATH, of its projects.
 *
 * @throws CommandError if there is no such project
 */
export async function examine(
  chosen: readonly Check[],
  examination: Examination,
): Promise<readonly CheckReport[]> {
  const { env, envFile, url, project, isAll, directory } = examination;
  const machinePart = machinePartOf(examination);
  const about = (subject: Parameters<typeof checksAbout>[0]) =>
    checksAbout(subject, machinePart !== null).filter((check) => chosen.includes(check));
  const ofService =
    machinePart === null ? readSettings(env, directory, envFile) : settingsOf(machinePart, env);
  const service = makeDoctorContext(ofService, url, machinePart);
  const { projectsPath } = service;
  if (projectsPath === null) {
    if (project === null) return await runChecks(service, chosen === checks ? about(null) : chosen);
    throw new CommandError("PROJECTS_PATH is not set, so there is one project, without a name.");
  }
  const all = contexts(ofService, projectsPath, url, machinePart);
  const wanted = project === null ? (isAll ? all : within(directory, all)) : named(project, all);
  const reports = [...(await runChecks(service, about("service")))];
  for (let next = 0; next < wanted.length; next += mostAtOnce) {
    const some = wanted.slice(next, next + mostAtOnce);
    reports.push(...(await Promise.all(some.map((one) => runChecks(one, about("project"))))).flat());
  }
  return reports;
}

/** The machine part, unless the settings describe another service, or the directory has a Hotpush of its own. */
function machinePartOf({ env, envFile, directory, project }: Examination): MachinePart | null {
  if (envFile !== undefined || (env.PROJECTS_PATH && !env.MACHINE_PATH)) return null;
  const part = findMachinePart(env);
  return part !== null && (project !== null || !hasOwnHotpush(part, directory)) ? part : null;
}

/** What its compose file gives `run`. The `.env` of the working directory is an app's. */
function settingsOf({ files, state }: MachinePart, env: NodeJS.ProcessEnv): Settings {
  const own = {
    PROJECTS_PATH: files.projectsPath,
    SECRETS_PATH: files.secretsPath,
    STATE_PATH: state.run,
    INBOX_SOCKET: join(state.receive, "inbox.sock"),
    MACHINE_PATH: files.path,
  };
  return { ...readSettings({}, files.path, files.envFile), env: { ...env, ...own } };
}

/** Files with a name that no project can have are reported with the service. */
function contexts(
  settings: Settings,
  projectsPath: string,
  url: string | null,
  machinePart: MachinePart | null,
): readonly DoctorContext[] {
  return namesIn(projectsPath)
    .filter(isProjectName)
    .toSorted()
    .map((name) => {
      const reading = readProjectFile({ projectsPath, secretsPath: null }, name);
      const own = projectSettings(settings, join(projectsPath, `${name}.env`));
      return makeDoctorContext(own, url, machinePart, reading);
    });
}

function namesIn(projectsPath: string): readonly string[] {
  try {
    return projectNames(projectsPath);
  } catch {
    return []; // A check of the service reports it.
  }
}

/** The settings of a project are in its file, those of the service where they were. */
function projectSettings(service: Settings, file: string): Settings {
  const own = readSettings({}, dirname(file), file);
  const { PROJECTS_PATH: _, ...env } = service.env;
  const settingsWith = (name: string) => (Object.hasOwn(machineVariables, name) ? service : own);
  return {
    ...own,
    fault: null, // It is among the faults of the project.
    env: { ...env, ...own.env },
    set: (name, text) => settingsWith(name).set(name, text),
    unset: (name) => settingsWith(name).unset(name),
  };
}

function named(name: string, all: readonly DoctorContext[]): readonly DoctorContext[] {
  const found = all.filter(({ project }) => project === name);
  if (found.length > 0) return found;
  const known = all.map(({ project }) => project).join(", ") || "none";
  throw new CommandError(`There is no project ${name}. The projects are: ${known}.`);
}

/** Those whose checkout the directory is in; all if it is in none. */
function within(directory: string, all: readonly DoctorContext[]): readonly DoctorContext[] {
  const found = all.filter(({ repoPath }) =>
    `${real(directory)}${sep}`.startsWith(`${real(repoPath)}${sep}`),
  );
  return found.length > 0 ? found : all;
}

function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
