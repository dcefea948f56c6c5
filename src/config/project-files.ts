import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual, parseEnv } from "node:util";
import type { Log } from "#log";
import { repeat } from "#platform/async";
import { ProblemError } from "#problems";
import { type ProjectSettings, readProjectSettings } from "./project.ts";
import { projectVariables } from "./settings.ts";

/** A repository that is deployed, with its settings as they are now. */
export interface ProjectConfig {
  readonly name: string;
  readonly settings: ProjectSettings;
  /** The variables that only its scripts get. */
  readonly scriptSecrets: Readonly<Record<string, string>>;
}

/** Which projects there are. */
export interface ProjectFiles {
  /** By name. */
  readonly list: () => readonly ProjectConfig[];
  readonly find: (name: string) => ProjectConfig | null;
  /** What is wrong with the settings of a project, by its name: its last good ones, if any, stay in force. */
  readonly faults: () => ReadonlyMap<string, string>;
  /** Calls `onChange` with the names of projects that were added, changed or removed. */
  readonly watch: (onChange: (names: readonly string[]) => void) => void;
  /** Reads them again now. */
  readonly refresh: () => void;
  readonly stop: () => void;
}

/** The name of the project that the environment describes. */
export const onlyProjectName = "default";

/** True for a name that can be a file, a path of a URL and part of a Docker network as it stands. */
export function isProjectName(text: string): boolean {
  return /^[a-z0-9][a-z0-9-]{0,38}$/.test(text);
}

/** The one project that the environment describes. */
export function onlyProject(settings: ProjectSettings): ProjectFiles {
  const project = { name: onlyProjectName, settings, scriptSecrets: {} };
  return {
    list: () => [project],
    find: (name) => (name === onlyProjectName ? project : null),
    faults: () => new Map(),
    watch: () => {},
    refresh: () => {},
    stop: () => {},
  };
}

export interface ProjectFilesOptions extends ProjectPaths {
  /** How often the files are read again. */
  readonly readEveryMs?: number;
  readonly log: Log;
}

interface FilesState extends ProjectFilesOptions {
  readonly projects: Map<string, ProjectConfig>;
  readonly faults: Map<string, string>;
  /** The last reading, by name. */
  known: ReadonlyMap<string, ProjectReading>;
  readonly listeners: ((names: readonly string[]) => void)[];
}

/**
 * Reads the projects from the files `<name>.env` of a directory, now and every two seconds. A file that is added, changed
 * or removed counts within five seconds. If a file is broken, the last good settings of its project stay in force.
 *
 * @throws ProblemError `configuration_invalid` if the directory cannot be read: without it every push would be refused
 */
export function readProjectFiles(options: ProjectFilesOptions): ProjectFiles {
  const maps = { projects: new Map(), faults: new Map(), known: new Map() };
  const state: FilesState = { ...options, ...maps, listeners: [] };
  readAgain(state);
  const fault = state.faults.get(options.projectsPath);
  if (fault !== undefined) throw new ProblemError({ code: "configuration_invalid", detail: fault });
  const onFault = (error: unknown) =>
    state.log.error({ event: "projects.failed", err: error }, "The projects could not be read again");
  const readings = repeat(async () => readAgain(state), {
    intervalMs: options.readEveryMs ?? 2_000,
    onFault,
  });
  return {
    list: () => [...state.projects.values()].sort((one, other) => (one.name < other.name ? -1 : 1)),
    find: (name) => state.projects.get(name) ?? null,
    faults: () => state.faults,
    watch(onChange) {
      if (state.listeners.push(onChange) === 1) readings.start();
    },
    refresh: () => readAgain(state),
    stop: readings.stop,
  };
}

function readAgain(state: FilesState): void {
  const { projects, faults, known: before } = state;
  const now = readAll(state);
  if (now === null) return;
  state.known = now;
  // An editor may move the old file away a moment before it writes the new one.
  const isGone = (name: string) => !now.has(name) && !before.has(name);
  const removed = [...new Set([...projects.keys(), ...faults.keys()])].filter(isGone);
  for (const name of removed) forget(state, name);
  // What was wrong with another project may be right now: two had the same checkout.
  const isNew = (reading: ProjectReading) =>
    faults.has(reading.name) || !areSame(reading, before.get(reading.name));
  const changed = [...now.values()].filter(isNew).filter((reading) => adopt(state, reading));
  const names = [...removed, ...changed.map(({ name }) => name)];
  if (names.length > 0) for (const onChange of state.listeners) onChange(names);
}

function areSame(one: ProjectReading, other: ProjectReading | undefined): boolean {
  return isDeepStrictEqual(one.texts, other?.texts) && isDeepStrictEqual(one.faults, other?.faults);
}

/** @returns whether the settings of a project are new */
function adopt(state: FilesState, { name, faults, project, warnings }: ProjectReading): boolean {
  const fault = faults.join(" ") || sharedCheckout(state.projects.values(), project);
  if (fault) setFault(state, name, fault);
  if (fault || project === null) return false;
  state.faults.delete(name);
  state.projects.set(name, project);
  state.log.info({ event: "project.read", project: name }, `The settings of project ${name} were read`);
  for (const text of warnings) state.log.warn({ event: "config.unwise", project: name }, text);
  return true;
}

function setFault({ faults, projects, log }: FilesState, name: string, fault: string): void {
  if (faults.get(name) === fault) return;
  faults.set(name, fault);
  const effect = projects.has(name) ? "Its last good settings stay in force" : "It is not served";
  log.error(
    { event: "project.broken", project: name },
    `Project ${name} has faulty settings. ${effect}: ${fault}`,
  );
}

function forget({ projects, faults, log }: FilesState, name: string): void {
  faults.delete(name);
  if (projects.delete(name))
    log.info({ event: "project.removed", project: name }, `Project ${name} was removed`);
}

/** Two projects in one checkout would change it at the same time. */
export function sharedCheckout(
  projects: Iterable<ProjectConfig>,
  project: ProjectConfig | null,
): string | null {
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

/**
 * The names of the files in `projectsPath` that describe projects, whether they may be names of projects or not.
 *
 * @throws Error if the directory cannot be read
 */
export function projectNames(projectsPath: string): readonly string[] {
  const files = readdirSync(projectsPath).filter((file) => file.endsWith(".env") && !file.startsWith("."));
  return files.map((file) => file.slice(0, -".env".length));
}

export interface ProjectPaths {
  readonly projectsPath: string;
  /** null: this process must not read what only scripts need. */
  readonly secretsPath: string | null;
}

/** What the file of a project says: its settings, or what is wrong with them. */
export interface ProjectReading {
  readonly name: string;
  /** The bytes that were read. Two readings are the same if these are. */
  readonly texts: readonly string[];
  readonly project: ProjectConfig | null;
  /** A sentence each. */
  readonly faults: readonly string[];
  readonly warnings: readonly string[];
}

/** Reads the file of one project. */
export function readProjectFile({ projectsPath, secretsPath }: ProjectPaths, name: string): ProjectReading {
  const broken = { name, texts: [], project: null, warnings: [] };
  if (!isProjectName(name))
    return { ...broken, faults: [`${name}.env is not the file of a project: ${nameRule}`] };
  try {
    const text = readText(join(projectsPath, `${name}.env`));
    const secretsFile = secretsPath === null ? null : join(secretsPath, `${name}.env`);
    const secretsText = secretsFile === null ? "" : readSecrets(secretsFile);
    return { ...parse(name, [text, secretsText], secretsPath !== null), name };
  } catch (error) {
    const { code, path, message } = error as NodeJS.ErrnoException;
    return { ...broken, faults: [code ? `${path ?? "A file"} cannot be read (${code}).` : message] };
  }
}

const longestText = 64 * 1024;

/** @throws Error if it is not a file of settings: a pipe would block the service, and a zero byte is in no variable */
function readText(path: string): string {
  const stats = statSync(path);
  if (!stats.isFile()) throw new Error(`${path} is not a regular file.`);
  if (stats.size > longestText) throw new Error(`${path} has more than 64 KiB.`);
  const text = readFileSync(path, "utf8");
  if (text.includes("\0")) throw new Error(`${path} has a zero byte in it.`);
  return text;
}

const nameRule =
  "a name has 1 to 39 lower-case letters, digits and hyphens, and begins with a letter or digit.";

/** @throws Error if others than its owner can read it, or it cannot be read. Without a file there are no secrets. */
function readSecrets(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return "";
  if ((stats.mode & 0o077) !== 0) throw new Error(`Other users can read ${path}. Run: chmod 600 ${path}`);
  return readText(path);
}

function parse(
  name: string,
  [text, secretsText]: readonly [string, string],
  readsFiles: boolean,
): Omit<ProjectReading, "name"> {
  const env = parseEnv(text) as Record<string, string>;
  const faults = unknownVariables(env);
  if (!env.REPO_PATH) faults.push("REPO_PATH is missing: the path of the project's checkout.");
  const { settings, warnings } = readProjectSettings(env, faults, { readsFiles });
  const scriptSecrets = parseEnv(secretsText) as Record<string, string>;
  const texts = [text, secretsText, ...secretTexts(settings)];
  if (faults.length > 0) return { texts, project: null, faults, warnings: [] };
  return { texts, project: { name, settings, scriptSecrets }, faults, warnings };
}

/** For `hotpush send` and `hotpush init`. */
const notForService = ["WEBHOOK_URL", "HOTPUSH_GIT_HOST"];

/** A misspelt name would be without effect, and nobody would know. */
function unknownVariables(env: Readonly<Record<string, string>>): string[] {
  return Object.keys(env)
    .filter((name) => !Object.hasOwn(projectVariables, name) && !notForService.includes(name))
    .filter((name) => !/^WEBHOOK_SECRET(_PREVIOUS)?(_FILE)?$/.test(name))
    .map(
      (name) =>
        `${name} is no setting of a project. Variables that only deploy.sh needs belong in the secrets file.`,
    );
}

/** What WEBHOOK_SECRET_FILE, NOTIFY_FILE and COMMIT_STATUS_TOKEN_FILE name may change while the project's file stays as it is. */
function secretTexts({ secrets, notify, commitStatus }: ProjectSettings): readonly string[] {
  const targets = notify.targets.flatMap(({ kind, url, key }) => [kind, url.reveal(), key?.reveal() ?? ""]);
  return [
    secrets.current.reveal(),
    secrets.previous?.reveal() ?? "",
    commitStatus?.token.reveal() ?? "",
    ...targets,
  ];
}
