import { readdirSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import type { Log } from "../log.ts";
import { repeat } from "../platform/repeat.ts";
import { ProblemError } from "../problems.ts";
import type { Project, Projects } from "./project.ts";
import { type ProjectPaths, type ProjectReading, readProjectFile } from "./read-project-file.ts";

export interface ProjectFilesOptions extends ProjectPaths {
  /** How often the files are read again. A change counts if two readings in a row agree on it. */
  readonly readEveryMs?: number;
  readonly log: Log;
}

const leastRefreshMs = 1_000;

interface FilesState extends ProjectFilesOptions {
  readonly projects: Map<string, Project>;
  readonly faults: Map<string, string>;
  /** The last reading that counted, and the one after it, by name. */
  readonly known: Map<string, ProjectReading>;
  latest: ReadonlyMap<string, ProjectReading>;
  onChange: (names: readonly string[]) => void;
}

/**
 * Reads the projects from the files `<name>.env` of a directory, now and every two seconds. A file that is added, changed
 * or removed counts within five seconds. If a file is broken, the last good settings of its project stay in force.
 *
 * @throws ProblemError `configuration_invalid` if the directory cannot be read: without it every push would be refused
 */
export function readProjectFiles(options: ProjectFilesOptions): Projects {
  const maps = { projects: new Map(), faults: new Map(), known: new Map() };
  const state: FilesState = { ...options, ...maps, latest: new Map(), onChange: () => {} };
  const first = readAll(state);
  if (first === null) throw unreadable(state);
  state.latest = first;
  adopt(state, [...state.latest.values()]);
  const onFault = (error: unknown) =>
    state.log.error({ event: "projects.failed", err: error }, "The projects could not be read again");
  let refreshedAtMs = Number.NEGATIVE_INFINITY;
  const readings = repeat(async () => readAgain(state), {
    intervalMs: options.readEveryMs ?? 2_000,
    onFault,
  });
  return {
    list: () => [...state.projects.values()].sort((one, other) => (one.name < other.name ? -1 : 1)),
    find: (name) => state.projects.get(name) ?? null,
    faults: () => state.faults,
    watch(onChange) {
      state.onChange = onChange;
      readings.start();
    },
    refresh() {
      if (performance.now() - refreshedAtMs < leastRefreshMs) return;
      refreshedAtMs = performance.now();
      // Twice, so that what is new counts at once.
      readAgain(state);
      readAgain(state);
    },
    stop: readings.stop,
  };
}

/** A file that somebody is writing is read half: so a reading counts only if the next one is the same. */
function readAgain(state: FilesState): void {
  const { projects, faults, known, latest: before } = state;
  const now = readAll(state);
  if (now === null) return;
  state.latest = now;
  const isGone = (name: string) => !now.has(name) && !before.has(name);
  const removed = [...new Set([...projects.keys(), ...faults.keys()])].filter(isGone);
  for (const name of removed) forget(state, name);
  const settled = [...now.values()].filter((one) => areSame(one, before.get(one.name)));
  const changed = adopt(
    state,
    settled.filter((one) => !areSame(one, known.get(one.name))),
  );
  if (removed.length + changed.length === 0) return;
  // What was wrong with another project may be right now: two had the same checkout.
  for (const name of faults.keys()) known.delete(name);
  state.onChange([...removed, ...changed]);
}

function areSame(one: ProjectReading | undefined, other: ProjectReading | undefined): boolean {
  return isDeepStrictEqual(one?.texts, other?.texts) && isDeepStrictEqual(one?.faults, other?.faults);
}

/** @returns the names of the projects whose settings are new */
function adopt(state: FilesState, readings: readonly ProjectReading[]): readonly string[] {
  const changed: string[] = [];
  for (const reading of readings) {
    const { name, warnings } = reading;
    state.known.set(name, reading);
    const shared = sharedCheckout(state.projects.values(), reading.project);
    const fault = reading.faults.join(" ") || shared;
    if (fault) setFault(state, name, fault);
    else if (reading.project !== null) {
      state.faults.delete(name);
      state.projects.set(name, reading.project);
      state.log.info({ event: "project.read", project: name }, `The settings of project ${name} were read`);
      for (const text of warnings) state.log.warn({ event: "config.unwise", project: name }, text);
      changed.push(name);
    }
  }
  return changed;
}

function setFault({ faults, projects, log }: FilesState, name: string, fault: string): void {
  faults.set(name, fault);
  const effect = projects.has(name) ? "Its last good settings stay in force" : "It is not served";
  log.error(
    { event: "project.broken", project: name },
    `Project ${name} has faulty settings. ${effect}: ${fault}`,
  );
}

function forget({ known, projects, faults, log }: FilesState, name: string): void {
  known.delete(name);
  faults.delete(name);
  if (projects.delete(name))
    log.info({ event: "project.removed", project: name }, `Project ${name} was removed`);
}

/** Two projects in one checkout would change it at the same time. */
export function sharedCheckout(projects: Iterable<Project>, project: Project | null): string | null {
  const path = project?.settings.repoPath;
  const other = [...projects].find((one) => one.settings.repoPath === path && one.name !== project?.name);
  return other
    ? `REPO_PATH is ${path}, as in project ${other.name}. Give each project a checkout of its own.`
    : null;
}

/** @returns null if the directory cannot be read: then nothing is known, and nothing changes */
function readAll(state: FilesState): ReadonlyMap<string, ProjectReading> | null {
  const { projectsPath, log, faults } = state;
  try {
    const names = projectNames(projectsPath);
    faults.delete(projectsPath);
    return new Map(names.map((name) => [name, readProjectFile(state, name)]));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const fault = `PROJECTS_PATH is ${projectsPath}, which cannot be read (${code ?? "unknown error"}).`;
    if (!faults.has(projectsPath)) log.error({ event: "projects.failed" }, fault);
    faults.set(projectsPath, fault);
    return null;
  }
}

function unreadable({ projectsPath, faults }: FilesState): ProblemError {
  return new ProblemError({ code: "configuration_invalid", detail: faults.get(projectsPath) ?? "" });
}

/**
 * The names of the files in `projectsPath` that describe projects, whether they may be names of projects or not.
 *
 * @throws Error if the directory cannot be read
 */
export function projectNames(projectsPath: string): readonly string[] {
  const files = readdirSync(projectsPath).filter((file) => file.endsWith(".env") && !file.startsWith("."));
  return files.map((file) => file.slice(0, -".env".length));
}
