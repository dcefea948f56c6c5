import { realpathSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { machineVariables } from "../config/machine.ts";
import { CommandError } from "../problems.ts";
import { isProjectName } from "../projects/project.ts";
import { projectNames } from "../projects/project-files.ts";
import { readProjectFile } from "../projects/read-project-file.ts";
import { type Check, type CheckReport, checks, checksAbout, runChecks } from "./checks.ts";
import { type DoctorContext, makeDoctorContext } from "./context.ts";
import { readSettings, type Settings } from "./settings.ts";

export interface Examination {
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
  settings: Settings,
  chosen: readonly Check[],
  { url, project, isAll, directory }: Examination,
): Promise<readonly CheckReport[]> {
  const about = (subject: Parameters<typeof checksAbout>[0]) =>
    checksAbout(subject).filter((check) => chosen.includes(check));
  const service = makeDoctorContext(settings, url);
  const { projectsPath } = service;
  if (projectsPath === null) {
    if (project === null) return await runChecks(service, chosen === checks ? about(null) : chosen);
    throw new CommandError("PROJECTS_PATH is not set, so there is one project, without a name.");
  }
  const all = contexts(settings, projectsPath, url);
  const wanted = project === null ? (isAll ? all : within(directory, all)) : named(project, all);
  const reports = [...(await runChecks(service, about("service")))];
  for (let next = 0; next < wanted.length; next += mostAtOnce) {
    const some = wanted.slice(next, next + mostAtOnce);
    reports.push(...(await Promise.all(some.map((one) => runChecks(one, about("project"))))).flat());
  }
  return reports;
}

/** Files with a name that no project can have are reported with the service. */
function contexts(settings: Settings, projectsPath: string, url: string | null): readonly DoctorContext[] {
  return namesIn(projectsPath)
    .filter(isProjectName)
    .toSorted()
    .map((name) => {
      const reading = readProjectFile({ projectsPath, secretsPath: null }, name);
      return makeDoctorContext(projectSettings(settings, join(projectsPath, `${name}.env`)), url, reading);
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
