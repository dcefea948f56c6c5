import type { BlockList } from "node:net";
import {
  type Environment,
  type logLevels,
  pageVariables,
  readVariables,
  serviceVariables,
} from "./settings.ts";

/** The settings of the service itself, whatever its projects are. */
export interface ServiceSettings {
  readonly port: number;
  readonly host: string;
  readonly bodyLimitBytes: number;
  /** The proxies whose X-Forwarded-For is trusted. */
  readonly trustedProxies: BlockList;
  readonly statePath: string;
  /** The state directory of the server, in which scripts keep theirs; null: scripts use `statePath`. */
  readonly serverStatePath: string | null;
  /** The directory with a file for each project; null: the environment describes the only one. */
  readonly projectsPath: string | null;
  /** The directory with what only the scripts of a project need. */
  readonly secretsPath: string | null;
  /** How many deployments of different projects may run at once. */
  readonly maxRunning: number;
  /** Where pushes wait on disk until `run` has recorded them. */
  readonly spoolPath: string;
  /** The socket of `run` for `front`. */
  readonly frontSocket: string;
  readonly pagePort: number;
  readonly pageHost: string;
  /** Where people reach the page; null: there is none. */
  readonly pageUrl: URL | null;
  /** Addresses from which the metrics may be read without a token. */
  readonly metricsNetworks: BlockList;
  /** The directory of the server, which `run` keeps as its files say; null: there is none. */
  readonly serverPath: string | null;
  readonly shutdownGraceMs: number;
  readonly logLevel: LogLevel;
}

export type LogLevel = (typeof logLevels)[number];

/**
 * Reads the settings of the service.
 *
 * @param faults gets a sentence for each error; the settings may only be used if there is none
 */
export function readServiceSettings(env: Environment, faults: string[]): ServiceSettings {
  const values = readVariables({ ...serviceVariables, ...pageVariables }, env, faults);
  return Object.freeze({
    port: values.WEBHOOK_PORT,
    host: values.WEBHOOK_HOST,
    bodyLimitBytes: values.WEBHOOK_BODY_LIMIT,
    trustedProxies: values.TRUSTED_PROXIES,
    statePath: values.STATE_PATH,
    serverStatePath: values.SERVER_STATE_PATH,
    projectsPath: values.PROJECTS_PATH,
    secretsPath: values.SECRETS_PATH,
    maxRunning: values.MAX_RUNNING,
    spoolPath: values.SPOOL_PATH ?? `${values.STATE_PATH}/spool`,
    frontSocket: values.FRONT_SOCKET ?? `${values.STATE_PATH}/front.sock`,
    pagePort: values.PAGE_PORT,
    pageHost: values.PAGE_HOST,
    pageUrl: values.PAGE_URL,
    metricsNetworks: values.METRICS_NETWORKS,
    serverPath: values.SERVER_PATH,
    shutdownGraceMs: values.SHUTDOWN_GRACE,
    logLevel: values.LOG_LEVEL,
  });
}
