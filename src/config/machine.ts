import { type BlockList, isIP } from "node:net";
import { dirname, join } from "node:path";
import { parseDurationMs } from "./duration.ts";
import { type Environment, readVariables, type Variable } from "./read-variables.ts";
import { parseSizeBytes } from "./size.ts";
import { stateDirectoryOf } from "./state-path.ts";
import { parseNetworkRange, type Subnet } from "./subnet.ts";
import { absolutePath, parseAddressList, wholeNumber, within } from "./values.ts";

/** The settings of the service itself, whatever its projects are. */
export interface MachineSettings {
  readonly port: number;
  readonly host: string;
  readonly bodyLimitBytes: number;
  /** The proxies whose X-Forwarded-For is trusted. */
  readonly trustedProxies: BlockList;
  readonly statePath: string;
  /** The state directory of the machine part, in which scripts keep theirs; null: scripts use `statePath`. */
  readonly machineStatePath: string | null;
  /** The directory with a file for each project; null: the environment describes the only one. */
  readonly projectsPath: string | null;
  /** The directory with what only the scripts of a project need. */
  readonly secretsPath: string | null;
  /** How many deployments of different projects may run at once. */
  readonly maxRunning: number;
  /** The socket on which `receive` offers pushes to `run`. */
  readonly inboxSocket: string;
  /** The socket on which `hotpush page` calls. */
  readonly pageSocket: string;
  /** Where people reach the page; null: there is none. */
  readonly pageUrl: URL | null;
  /** Addresses from which the metrics may be read without a token. */
  readonly metricsNetworks: BlockList;
  /** The directory of the machine part, which `run` keeps as its files say; null: there is none. */
  readonly machinePath: string | null;
  /** The networks of projects get their subnets from it. */
  readonly networkRange: Subnet;
  readonly shutdownGraceMs: number;
  readonly logLevel: LogLevel;
}

export type LogLevel = (typeof logLevels)[number];

const logLevels = ["debug", "info", "warn", "error"] as const;

export const machineVariables = {
  WEBHOOK_PORT: {
    fallback: () => "9000",
    expected: "a TCP port, 1 to 65535 (0 takes any free one)",
    read: (text) => wholeNumber(text, 0, 65_535),
  },
  WEBHOOK_HOST: {
    fallback: () => "0.0.0.0",
    expected: "an IP address of this machine, or localhost",
    read: (text) => (isIP(text) !== 0 || text === "localhost" ? text : null),
  },
  WEBHOOK_BODY_LIMIT: {
    fallback: () => "25 MiB",
    expected: "a size from 1 KiB to 50 MiB, such as 25 MiB",
    read: (text) => within(parseSizeBytes(text), 1024, 50 * 1024 ** 2),
  },
  TRUSTED_PROXIES: {
    fallback: () => "",
    expected: "IP addresses, subnets such as 10.0.0.0/8, or private_ranges, separated by commas",
    read: parseAddressList,
  },
  STATE_PATH: { fallback: stateDirectoryOf, expected: "an absolute path", read: absolutePath },
  MACHINE_STATE_PATH: {
    fallback: () => "",
    expected: "the absolute path of a directory",
    read: (text) => (text === "" ? "" : absolutePath(text)),
  },
  PROJECTS_PATH: {
    fallback: () => "",
    expected: "the absolute path of a directory",
    read: (text) => (text === "" ? "" : absolutePath(text)),
  },
  SECRETS_PATH: {
    fallback: ({ PROJECTS_PATH }) => (PROJECTS_PATH ? join(dirname(PROJECTS_PATH), "secrets") : ""),
    expected: "the absolute path of a directory",
    read: (text) => (text === "" ? "" : absolutePath(text)),
  },
  MAX_RUNNING: {
    fallback: () => "1",
    expected: "a number from 1 to 64",
    read: (text) => wholeNumber(text, 1, 64),
  },
  INBOX_SOCKET: {
    fallback: () => "",
    expected: "the absolute path of a socket",
    read: (text) => (text === "" ? "" : absolutePath(text)),
  },
  PAGE_SOCKET: {
    fallback: () => "",
    expected: "the absolute path of a socket",
    read: (text) => (text === "" ? "" : absolutePath(text)),
  },
  PAGE_URL: {
    fallback: () => "",
    expected: "an https address without a path, such as https://hotpush.example.com (http on localhost only)",
    read: (text) => (text === "" ? "" : parsePageUrl(text)),
  },
  METRICS_NETWORKS: {
    fallback: () => "",
    expected: "IP addresses, subnets such as 10.0.0.0/8, or private_ranges, separated by commas",
    read: parseAddressList,
  },
  MACHINE_PATH: {
    fallback: () => "",
    expected: "the absolute path of a directory",
    read: (text) => (text === "" ? "" : absolutePath(text)),
  },
  NETWORK_RANGE: {
    fallback: () => "10.231.0.0/16",
    expected: "an IPv4 subnet of at least 32 addresses, such as 10.231.0.0/16",
    read: parseNetworkRange,
  },
  SHUTDOWN_GRACE: {
    fallback: () => "5s",
    expected: "a duration from 0 to 24h, such as 5s",
    read: parseDurationMs,
  },
  LOG_LEVEL: {
    fallback: () => "info",
    expected: `one of ${logLevels.join(", ")}`,
    read: (text) => logLevels.find((level) => level === text) ?? null,
  },
} as const satisfies Record<string, Variable<unknown>>;

/**
 * Reads the settings of the service.
 *
 * @param faults gets a sentence for each error; the settings may only be used if there is none
 */
export function readMachineSettings(env: Environment, faults: string[]): MachineSettings {
  const values = readVariables(machineVariables, env, faults);
  return Object.freeze({
    port: values.WEBHOOK_PORT,
    host: values.WEBHOOK_HOST,
    bodyLimitBytes: values.WEBHOOK_BODY_LIMIT,
    trustedProxies: values.TRUSTED_PROXIES,
    statePath: values.STATE_PATH,
    machineStatePath: values.MACHINE_STATE_PATH || null,
    projectsPath: values.PROJECTS_PATH || null,
    secretsPath: values.SECRETS_PATH || null,
    maxRunning: values.MAX_RUNNING,
    inboxSocket: values.INBOX_SOCKET || `${values.STATE_PATH}/inbox.sock`,
    pageSocket: values.PAGE_SOCKET || `${values.STATE_PATH}/page.sock`,
    pageUrl: values.PAGE_URL || null,
    metricsNetworks: values.METRICS_NETWORKS,
    machinePath: values.MACHINE_PATH || null,
    networkRange: values.NETWORK_RANGE,
    shutdownGraceMs: values.SHUTDOWN_GRACE,
    logLevel: values.LOG_LEVEL,
  });
}

/** The page has a host name of its own: below the address of an app, that app could act for its visitors. */
export function parsePageUrl(text: string): URL | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || `${url.origin}/` !== url.href) return null;
  // A browser keeps the session only if the connection is safe.
  return url.protocol === "https:" || (url.protocol === "http:" && url.hostname === "localhost") ? url : null;
}
