import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Log } from "#log";
import { repeat } from "#platform/async";
import { parseEnvFile } from "#platform/env-file";
import type { Argv } from "#platform/run-command";
import { ProblemError } from "#problems";
import { type ProjectSettings, readProjectSettings } from "./project.ts";
import { readNamedFile, readSmallFile } from "./secret.ts";
import { isProjectName, onlyProjectName } from "./server.ts";
import { projectVariables } from "./settings.ts";

/** A repository that is deployed, with its settings as they are now. */
export interface ProjectConfig {
  readonly name: string;
  readonly settings: ProjectSettings;
  /** The variables that only its scripts get. */
  readonly scriptSecrets: Readonly<Record<string, string>>;
  /** More of them, by the commands that print their values when a script starts. */
  readonly secretCommands: Readonly<Record<string, Argv>>;
}

/** Which projects there are. */
export type ProjectFiles = Readonly<ReturnType<typeof readProjectFiles>>;

/** The one project that the environment describes. */
export function onlyProject(settings: ProjectSettings): ProjectFiles {
  const project = { name: onlyProjectName, settings, scriptSecrets: {}, secretCommands: {} };
  return {
    list: () => [project],
    find: (name) => (name === onlyProjectName ? project : null),
    faults: () => new Map(),
    watch: () => {},
    refresh: () => {},
    stop: () => {},
  };
}

export interface ProjectPaths {
  readonly projectsPath: string;
  /** null: this process must not read what only scripts need. */
  readonly secretsPath: string | null;
}

/**
 * Reads the projects from the files `<name>.env` of a directory, now and every two seconds. A file that is added, changed
 * or removed counts within five seconds. If a file is broken, the last good settings of its project stay in force.
 *
 * @throws ProblemError `configuration_invalid` if the directory cannot be read: without it every push would be refused
 */
export function readProjectFiles(
  options: ProjectPaths & { readonly log: Log; readonly readEveryMs?: number },
) {
  const { projectsPath, log, readEveryMs = 2_000 } = options;
  const projects = new Map<string, ProjectConfig>();
  const faults = new Map<string, string>();
  const listeners: ((names: readonly string[]) => void)[] = [];
  /** The last readings, by name. */
  let known: ReadonlyMap<string, ProjectReading> = new Map();

  function refresh(): void {
    const before = known;
    try {
      known = new Map(projectNames(projectsPath).map((name) => [name, readProjectFile(options, name)]));
      faults.delete(projectsPath);
    } catch (error) {
      // Nothing is known, so nothing changes.
      const { code } = error as NodeJS.ErrnoException;
      setFault(projectsPath, `PROJECTS_PATH is ${projectsPath}, which cannot be read (${code}).`);
      return;
    }
    // An editor may move the old file away a moment before it writes the new one.
    const isGone = (name: string) => !known.has(name) && !before.has(name);
    const removed = [...new Set([...projects.keys(), ...faults.keys()])].filter(isGone);
    for (const name of removed) {
      faults.delete(name);
      if (projects.delete(name))
        log.info({ event: "project.removed", project: name }, `Project ${name} was removed`);
    }
    // What was wrong with another project may be right now: two had the same checkout.
    const isNew = ({ name, texts }: ProjectReading) =>
      faults.has(name) || !isDeepStrictEqual(texts, before.get(name)?.texts);
    const adopted = [...known.values()].filter(isNew).filter(adopt);
    const names = [...removed, ...adopted.map(({ name }) => name)];
    if (names.length > 0) for (const onChange of listeners) onChange(names);
  }

  /** @returns whether the settings of the project are new */
  function adopt({ name, faults: own, project, warnings }: ProjectReading): boolean {
    const path = project?.settings.repoPath;
    // Two projects in one checkout would change it at the same time.
    const other = [...projects.values()].find((one) => one.settings.repoPath === path && one.name !== name);
    const shared = `REPO_PATH is ${path}, as in project ${other?.name}. Give each project a checkout of its own.`;
    if (project === null || other) {
      setFault(name, project === null ? own.join(" ") : shared);
      return false;
    }
    faults.delete(name);
    projects.set(name, project);
    log.info({ event: "project.read", project: name }, `The settings of project ${name} were read`);
    for (const text of warnings) log.warn({ event: "config.unwise", project: name }, text);
    return true;
  }

  function setFault(name: string, fault: string): void {
    if (faults.get(name) === fault) return;
    faults.set(name, fault);
    const effect = projects.has(name) ? "Its last good settings stay in force" : "It is not served";
    const text = name === projectsPath ? fault : `Project ${name} has faulty settings. ${effect}: ${fault}`;
    log.error({ event: "project.broken", project: name }, text);
  }

  refresh();
  const fault = faults.get(projectsPath);
  if (fault !== undefined) throw new ProblemError({ code: "configuration_invalid", detail: fault });
  const readings = repeat(async () => refresh(), {
    intervalMs: readEveryMs,
    onFault: (error) =>
      log.error({ event: "projects.failed", err: error }, "The projects could not be read again"),
  });
  readings.start();
  return {
    /** By name. */
    list: () => [...projects.values()].sort((one, other) => (one.name < other.name ? -1 : 1)),
    find: (name: string) => projects.get(name) ?? null,
    /** What is wrong with the settings of a project, by its name: its last good ones, if any, stay in force. */
    faults: (): ReadonlyMap<string, string> => faults,
    /** Calls `onChange` with the names of projects that were added, changed or removed. */
    watch: (onChange: (names: readonly string[]) => void): unknown => listeners.push(onChange),
    /** Reads them again now. */
    refresh,
    stop: readings.stop,
  };
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

/** What the file of a project says: its settings, or what is wrong with them. */
export type ProjectReading = Readonly<ReturnType<typeof readProjectFile>>;

/**
 * Reads the file of one project.
 *
 * @returns `project` is null if there are `faults`, which are sentences, as `warnings` are; two readings are the same if their `texts` are
 */
export function readProjectFile({ projectsPath, secretsPath }: ProjectPaths, name: string) {
  const broken = { name, texts: [], project: null, warnings: [] };
  try {
    if (!isProjectName(name))
      throw new Error(
        `${name}.env is not the file of a project: a name has 1 to 39 lower-case letters, digits and hyphens, and begins with a letter or digit.`,
      );
    const text = readSmallFile(join(projectsPath, `${name}.env`), false);
    const secretsFile = secretsPath === null ? null : join(secretsPath, `${name}.env`);
    // If it cannot be known whether there are secrets, this throws.
    const hasSecrets = secretsFile !== null && statSync(secretsFile, { throwIfNoEntry: false }) !== undefined;
    const secretsText = hasSecrets ? readSmallFile(secretsFile, true) : "";
    const env = parseEnvFile(text) as Record<string, string>;
    // What these name may change while the project's file stays as it is.
    const named = secretsPath === null ? /^WEBHOOK_.*_FILE$/ : /_FILE$/;
    const files = Object.entries(env).filter(([variable]) => named.test(variable));
    const texts = [text, secretsText, ...files.map(([variable, path]) => readNamedFile(variable, path))];
    const faults = unknownVariables(env);
    if (!env.REPO_PATH) faults.push("REPO_PATH is missing: the path of the project's checkout.");
    const { settings, warnings } = readProjectSettings(env, faults, { readsFiles: secretsPath !== null });
    const project = { name, settings, ...readScriptSecrets(secretsText, faults) };
    return faults.length > 0 ? { ...broken, texts, faults } : { name, texts, project, faults, warnings };
  } catch (error) {
    return { ...broken, faults: [(error as Error).message] };
  }
}

/**
 * The values and the commands of a file of secrets. A value that begins with `!` and is not quoted is a command.
 *
 * @param faults gets a sentence for each command that cannot be read
 */
function readScriptSecrets(text: string, faults: string[]) {
  const scriptSecrets = parseEnvFile(text) as Record<string, string>;
  const secretCommands: Record<string, Argv> = {};
  for (const [name, value] of Object.entries(scriptSecrets)) {
    const literal = name.replace(/\W/g, "\\$&");
    const isCommand = new RegExp(`^[ \\t]*(?:export[ \\t]+)?${literal}[ \\t]*=[ \\t]*!`, "m").test(text);
    if (!value.startsWith("!") || !isCommand) continue;
    delete scriptSecrets[name];
    const argv = splitCommand(value.slice(1));
    if ("flaw" in argv) faults.push(`The command of ${name} in the secrets file ${argv.flaw}.`);
    else secretCommands[name] = argv;
  }
  return { scriptSecrets, secretCommands };
}

/**
 * Splits a command at blanks. What is between two quotes of a kind is taken as it is, blanks included; nothing else has a meaning.
 *
 * @returns `flaw` ends a sentence, if it is no command
 */
function splitCommand(text: string): Argv | { readonly flaw: string } {
  const words = [...text.matchAll(/(?:[^\s"']|"[^"]*"|'[^']*')+/g)].map(([word]) => word);
  if (words.join("") !== text.replace(/("[^"]*"|'[^']*')|\s/g, "$1"))
    return { flaw: "has a quote without an end" };
  const [program, ...args] = words.map((word) => word.replace(/"([^"]*)"|'([^']*)'/g, "$1$2"));
  return program ? [program, ...args] : { flaw: "names no program" };
}

/** A misspelt name would be without effect, and nobody would know. `hotpush send` and `init` use two more. */
function unknownVariables(env: Readonly<Record<string, string>>): string[] {
  const known = /^WEBHOOK_(?:URL|SECRET(_PREVIOUS)?(_FILE)?)$|^HOTPUSH_GIT_HOST$/;
  const unknown = Object.keys(env).filter(
    (name) => !Object.hasOwn(projectVariables, name) && !known.test(name),
  );
  const advice =
    "is no setting of a project. Variables that only deploy.sh needs belong in the secrets file.";
  return unknown.map((name) => `${name} ${advice}`);
}
