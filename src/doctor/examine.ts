import { dirname, join } from "node:path";
import { projectNames, readProjectFile } from "#config/project-files";
import { isProjectName } from "#config/server";
import { serviceVariables } from "#config/settings";
import { CommandError } from "#problems";
import { chooseAnyProject, findServer, type Server } from "#setup/server";
import { dockerChecks } from "./compose.ts";
import { type Check, type DoctorContext, makeDoctorContext, readSettings, type Settings } from "./context.ts";
import { type Finding, skip, warning } from "./finding.ts";
import { gitChecks, scriptChecks } from "./git.ts";
import { configurationChecks, diskChecks } from "./host.ts";
import { checkInRun } from "./in-run.ts";
import { serverChecks, serviceChecks } from "./server.ts";

const groups: Readonly<Record<string, readonly Check[]>> = {
  Configuration: configurationChecks,
  Server: serverChecks,
  Service: serviceChecks,
  Disk: diskChecks,
  Git: gitChecks,
  Script: scriptChecks,
  Docker: dockerChecks,
};

/** About what scripts find where they run. On a server, that is the container of `run`. */
const groupsInRun: readonly string[] = ["Git", "Script", "Docker"];

/** The checks of `hotpush doctor`, in the order of its report. docs/troubleshooting.md has them too. */
export const checks = Object.entries(groups).flatMap(([group, rows]) =>
  rows.map((row) => ({ ...row, group })),
);

export type GroupedCheck = (typeof checks)[number];

/** A check and what it found. */
export interface CheckReport {
  readonly check: GroupedCheck;
  readonly result: Finding;
  /** null: it is about the service, or the only project. */
  readonly project: string | null;
}

export interface Examination {
  readonly env: NodeJS.ProcessEnv;
  /** The webhook's address from the command line, or null. */
  readonly url: string | null;
  /** The only project to check; undefined: that of `directory`, else all. */
  readonly project: string | undefined;
  readonly directory: string;
}

/**
 * Runs the chosen checks: of the service and, with PROJECTS_PATH, of its projects.
 *
 * @throws CommandError if there is no such project, or this user may not read the projects
 */
export async function examine(
  chosen: readonly GroupedCheck[],
  { env, url, project, directory }: Examination,
): Promise<readonly CheckReport[]> {
  // PROJECTS_PATH describes another service.
  const server = env.PROJECTS_PATH && !env.SERVER_PATH ? null : findServer(env);
  const about = (...subjects: readonly Check["about"][]) =>
    chosen.filter(({ about: subject = "project" }) => subjects.includes(subject));
  const settings = server === null ? readSettings(env, directory) : settingsOf(server, env);
  const service = makeDoctorContext(settings, url, server);
  const { projectsPath } = service;
  if (projectsPath === null) {
    if (project === undefined) return await runChecks(service, about("service", "project", "both"));
    throw new CommandError("PROJECTS_PATH is not set, so there is one project, without a name.");
  }
  const { project: only } = chooseAnyProject(
    { ...settings.env, PROJECTS_PATH: projectsPath },
    directory,
    project,
  );
  const names = only === null ? projectNames(projectsPath).filter(isProjectName).toSorted() : [only.name];
  const reports = [...(await runChecks(service, about("service", "both", server ? "server" : "both")))];
  // Only `run` has this variable.
  const isElsewhere = server !== null && env.SERVER_STATE_PATH === undefined;
  const inRun = about("project", "both").filter(({ group }) => isElsewhere && groupsInRun.includes(group));
  const ids = inRun.map(({ id }) => id);
  // One project after the other: each runs a dozen programs.
  for (const name of names) {
    // In `run`, compose reads its file with the secrets of the script.
    const secretsPath = server === null || isElsewhere ? null : server.files.secretsPath;
    const reading = readProjectFile({ projectsPath, secretsPath }, name);
    const own = projectSettings(settings, join(projectsPath, `${name}.env`));
    const one = makeDoctorContext(own, url, server, reading);
    const there = ids.length > 0 ? await checkInRun(name, ids, env) : null;
    const unknown = skip("`run` cannot be asked: see `containers`, or use sudo");
    const known = new Map(ids.map((id) => [id, there?.get(id) ?? unknown]));
    reports.push(...(await runChecks(one, about("project", "both"), known)));
  }
  return reports;
}

/** What its compose file gives `run`. The `.env` of the working directory is an app's. */
function settingsOf({ files, state }: Server, env: NodeJS.ProcessEnv): Settings {
  const own = {
    PROJECTS_PATH: files.projectsPath,
    SECRETS_PATH: files.secretsPath,
    STATE_PATH: state.run,
    SPOOL_PATH: join(state.front, "spool"),
    FRONT_SOCKET: join(state.socket, "front.sock"),
    SERVER_PATH: files.path,
  };
  return { ...readSettings({}, files.path, files.envFile), env: { ...env, ...own } };
}

/** The settings of a project are in its file, those of the service where they were. */
function projectSettings(service: Settings, file: string): Settings {
  const own = readSettings({}, dirname(file), file);
  const { PROJECTS_PATH: _, ...env } = service.env;
  return {
    ...own,
    fault: null, // It is among the faults of the project.
    env: { ...env, ...own.env },
    set: (name, text) => (Object.hasOwn(serviceVariables, name) ? service : own).set(name, text),
  };
}

/**
 * Runs the checks at the same time. A check that itself fails gives a warning, and the others go on.
 *
 * @param known what is known already, by the names of checks
 */
export function runChecks(
  context: DoctorContext,
  chosen: readonly GroupedCheck[],
  known: ReadonlyMap<string, Finding> = new Map(),
): Promise<readonly CheckReport[]> {
  const { project } = context;
  return Promise.all(
    chosen.map(async (check) => {
      const result = await Promise.resolve(context)
        .then((one) => known.get(check.id) ?? check.probe(one))
        .catch((error: Error) => warning(`Check failed: ${error.message}`));
      return { check, project, result };
    }),
  );
}
