import { type ProjectSettings, readProjectSettings } from "#config/project";
import { readServiceSettings, type ServiceSettings } from "#config/service";
import { type Environment, projectVariables, secretVariables } from "#config/settings";
import { ProblemError } from "./problems.ts";

/** The settings of a service with one project. */
export type Config = ServiceSettings & ProjectSettings;

export interface LoadedConfig {
  readonly service: ServiceSettings;
  /** null: PROJECTS_PATH names a directory of projects. */
  readonly project: ProjectSettings | null;
  /** Settings that are allowed but unwise. */
  readonly warnings: readonly string[];
}

/**
 * Reads and checks the whole configuration, once at start; nothing else in the service reads the environment for it.
 *
 * @throws ProblemError `configuration_invalid`, whose detail has a line for each error
 */
export function loadConfig(env: Environment): LoadedConfig {
  const faults: string[] = [];
  const service = readServiceSettings(env, faults);
  const project = env.PROJECTS_PATH ? null : readProjectSettings(env, faults);
  if (project === null) faults.push(...strayVariables(env));
  if (faults.length > 0) {
    throw new ProblemError({ code: "configuration_invalid", detail: faults.join("\n") });
  }
  return { service, project: project?.settings ?? null, warnings: project?.warnings ?? [] };
}

/** With PROJECTS_PATH, a setting of one project in the environment would be silently without effect. */
function strayVariables(env: Environment): readonly string[] {
  const names = Object.keys({ ...projectVariables, ...secretVariables });
  return names
    .flatMap((name) => [name, `${name}_FILE`])
    .filter((name) => env[name])
    .map(
      (name) =>
        `${name} is a setting of one project, but PROJECTS_PATH is set. Move it to the project's file in PROJECTS_PATH.`,
    );
}
