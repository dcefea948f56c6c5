import { type Environment, pageVariables, readVariables, serviceVariables } from "./settings.ts";

/** The settings of the service itself, whatever its projects are. */
export type ServiceSettings = ReturnType<typeof readServiceSettings>;

export type LogLevel = ServiceSettings["logLevel"];

/**
 * Reads the settings of the service.
 *
 * @param faults gets a sentence for each error; the settings may only be used if there is none
 */
export function readServiceSettings(env: Environment, faults: string[]) {
  const values = readVariables({ ...serviceVariables, ...pageVariables }, env, faults);
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
    pageHost: values.PAGE_HOST,
    pageUrl: values.PAGE_URL,
    metricsNetworks: values.METRICS_NETWORKS,
    /** The directory of the server, which `run` keeps as its files say; null: there is none. */
    serverPath: values.SERVER_PATH,
    shutdownGraceMs: values.SHUTDOWN_GRACE,
    logLevel: values.LOG_LEVEL,
  });
}
