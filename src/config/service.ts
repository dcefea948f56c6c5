import { ProblemError } from "#problems";
import { readProjectSettings } from "./project.ts";
import {
  type Environment,
  projectVariables,
  readVariables,
  secretVariables,
  serviceVariables,
} from "./settings.ts";

/** The settings of the service itself, whatever its projects are. */
export type ServiceSettings = ReturnType<typeof readServiceSettings>;

export type LogLevel = ServiceSettings["logLevel"];

/**
 * Reads the settings of the service.
 *
 * @param faults gets a sentence for each error; the settings may only be used if there is none
 */
function readServiceSettings(env: Environment, faults: string[]) {
  const values = readVariables(serviceVariables, env, faults);
  return Object.freeze({
    port: values.WEBHOOK_PORT,
    host: values.WEBHOOK_HOST,
    bodyLimitBytes: values.WEBHOOK_BODY_LIMIT,
    trustedProxies: values.TRUSTED_PROXIES,
    statePath: values.STATE_PATH,
    /** The state directory of the server, in which scripts keep theirs; null: scripts use `statePath`. */
    serverStatePath: values.SERVER_STATE_PATH,
    /** The directory with a file for each project; null: the environment describes the only one. */
    projectsPath: values.PROJECTS_PATH,
    secretsPath: values.SECRETS_PATH,
    maxRunning: values.MAX_RUNNING,
    spoolPath: values.SPOOL_PATH ?? `${values.STATE_PATH}/spool`,
    frontSocket: values.FRONT_SOCKET ?? `${values.STATE_PATH}/front.sock`,
    pagePort: values.PAGE_PORT,
    pageUrl: values.PAGE_URL,
    isBadgePublic: values.PAGE_BADGE === "1",
    metricsNetworks: values.METRICS_NETWORKS,
    /** The directory of the server, which `run` keeps as its files say; null: there is none. */
    serverPath: values.SERVER_PATH,
    shutdownGraceMs: values.SHUTDOWN_GRACE,
    logLevel: values.LOG_LEVEL,
  });
}

/**
 * Reads and checks the whole configuration, once at start; nothing else in the service reads the environment for it.
 *
 * @returns `project` is null if PROJECTS_PATH names a directory of projects; `warnings` are about settings that are allowed but unwise
 * @throws ProblemError `configuration_invalid`, whose detail has a line for each error
 */
export function loadConfig(env: Environment) {
  const faults: string[] = [];
  const service = readServiceSettings(env, faults);
  const project = env.PROJECTS_PATH ? null : readProjectSettings(env, faults);
  if (project === null) faults.push(...strayVariables(env));
  if (faults.length > 0) throw new ProblemError({ code: "configuration_invalid", detail: faults.join("\n") });
  return { service, project: project?.settings ?? null, warnings: project?.warnings ?? [] };
}

/** With PROJECTS_PATH, a setting of one project in the environment would be silently without effect. */
function strayVariables(env: Environment): readonly string[] {
  const names = Object.keys({ ...projectVariables, ...secretVariables });
  const stray = names.flatMap((name) => [name, `${name}_FILE`]).filter((name) => env[name]);
  const advice =
    "is a setting of one project, but PROJECTS_PATH is set. Move it to the project's file in PROJECTS_PATH.";
  return stray.map((name) => `${name} ${advice}`);
}
