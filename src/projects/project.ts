import type { ProjectSettings } from "../config/project.ts";

/** A repository that is deployed, with its settings as they are now. */
export interface Project {
  readonly name: string;
  readonly settings: ProjectSettings;
  /** The variables that only its scripts get. */
  readonly scriptSecrets: Readonly<Record<string, string>>;
}

/** Which projects there are. */
export interface Projects {
  /** By name. */
  readonly list: () => readonly Project[];
  readonly find: (name: string) => Project | null;
  /** What is wrong with the settings of a project, by its name: its last good ones, if any, stay in force. */
  readonly faults: () => ReadonlyMap<string, string>;
  /** Calls `onChange` with the names of projects that were added, changed or removed. */
  readonly watch: (onChange: (names: readonly string[]) => void) => void;
  /** Reads them again now, at most once a second. */
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
export function onlyProject(settings: ProjectSettings): Projects {
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
