import { type BlockList, isIP } from "node:net";
import { parseDurationMs } from "./config/duration.ts";
import { makeSecret, readSecretText, type Secret, secretFault, secretWarnings } from "./config/secret.ts";
import { readSigners } from "./config/signers-file.ts";
import { parseSizeBytes } from "./config/size.ts";
import { stateDirectoryOf } from "./config/state-path.ts";
import {
  absolutePath,
  durationOrNever,
  parseAddressList,
  variableNames,
  wholeNumber,
  within,
} from "./config/values.ts";
import { ProblemError } from "./problems.ts";

/** The settings of the environment, read once at start; nothing else in the service reads them. */
export interface Config {
  readonly port: number;
  readonly host: string;
  readonly secrets: Secrets;
  readonly bodyLimitBytes: number;
  /** The proxies whose X-Forwarded-For is trusted. */
  readonly trustedProxies: BlockList;
  readonly repoPath: string;
  readonly repository: string | null;
  readonly branch: Branch | null;
  /** Path of a file of keys; null: commits need no signature. */
  readonly allowedSigners: string | null;
  readonly statePath: string;
  readonly deployTimeoutMs: number;
  readonly deploySilenceMs: number;
  readonly deployEnv: readonly string[];
  readonly catchUpIntervalMs: number;
  readonly shutdownGraceMs: number;
  readonly logLevel: LogLevel;
}

export interface Secrets {
  readonly current: Secret;
  readonly previous: Secret | null;
}

export type Branch = (typeof branches)[number];
export type LogLevel = (typeof logLevels)[number];
export type Environment = Readonly<Record<string, string | undefined>>;

/** One variable: how its text is read, and the error if it cannot be. */
interface Variable<Value> {
  readonly fallback: (env: Environment) => string;
  readonly expected: string;
  /** null: not as expected */
  readonly read: (text: string) => Value | null;
}

export const branches = ["main", "master"] as const;
const logLevels = ["debug", "info", "warn", "error"] as const;

/** Every variable but the secrets. A test compares the table of the README with this. */
export const variables = {
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
  REPO_PATH: { fallback: () => "/app", expected: "an absolute path", read: absolutePath },
  REPOSITORY: {
    fallback: () => "",
    expected: "owner/name, as the git host shows it",
    read: (text) => (text === "" || /^[\w.~-]+(\/[\w.~-]+)+$/.test(text) ? text : null),
  },
  BRANCH: {
    fallback: () => "",
    expected: "main or master",
    read: (text) => (text === "" ? "" : (branches.find((branch) => branch === text) ?? null)),
  },
  ALLOWED_SIGNERS: {
    fallback: () => "",
    expected: "the absolute path of a file outside of the repository",
    read: (text) => (text === "" ? "" : absolutePath(text)),
  },
  STATE_PATH: { fallback: stateDirectoryOf, expected: "an absolute path", read: absolutePath },
  DEPLOY_TIMEOUT: {
    fallback: () => "30m",
    expected: "a duration from 1s to 24h, such as 30m",
    read: (text) => within(parseDurationMs(text), 1_000, 24 * 3_600_000),
  },
  DEPLOY_SILENCE: {
    fallback: () => "10m",
    expected: "a duration from 1s to 24h such as 10m, or 0 for never",
    read: durationOrNever,
  },
  DEPLOY_ENV: {
    fallback: () => "",
    expected: "names of variables, separated by commas, none of them a webhook secret",
    read: variableNames,
  },
  CATCH_UP_INTERVAL: {
    fallback: () => "5m",
    expected: "a duration from 1s to 24h such as 5m, or 0 for never",
    read: durationOrNever,
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
 * Reads and checks the whole configuration.
 *
 * @returns the frozen configuration, and warnings about settings that are allowed but unwise
 * @throws ProblemError `configuration_invalid`, whose detail has a line for each error
 */
export function loadConfig(env: Environment): { readonly config: Config; readonly warnings: string[] } {
  const faults: string[] = [];
  const take = <Name extends keyof typeof variables>(name: Name) => readVariable(env, name, faults);
  const current = takeSecret(env, "WEBHOOK_SECRET", faults);
  const previous = takeSecret(env, "WEBHOOK_SECRET_PREVIOUS", faults);
  const values = {
    port: take("WEBHOOK_PORT"),
    host: take("WEBHOOK_HOST"),
    bodyLimitBytes: take("WEBHOOK_BODY_LIMIT"),
    trustedProxies: take("TRUSTED_PROXIES"),
    repoPath: take("REPO_PATH"),
    repository: take("REPOSITORY") || null,
    branch: take("BRANCH") || null,
    allowedSigners: take("ALLOWED_SIGNERS") || null,
    statePath: take("STATE_PATH"),
    deployTimeoutMs: take("DEPLOY_TIMEOUT"),
    deploySilenceMs: take("DEPLOY_SILENCE"),
    deployEnv: take("DEPLOY_ENV"),
    catchUpIntervalMs: take("CATCH_UP_INTERVAL"),
    shutdownGraceMs: take("SHUTDOWN_GRACE"),
    logLevel: take("LOG_LEVEL"),
  };
  const signers = values.allowedSigners && readSigners(values.allowedSigners, values.repoPath ?? "/app");
  if (typeof signers === "string") faults.push(signers);
  if (faults.length > 0) {
    throw new ProblemError({ code: "configuration_invalid", detail: faults.join("\n") });
  }
  const secrets = { current: makeSecret(current), previous: previous === "" ? null : makeSecret(previous) };
  // Every null has added a fault, so no value is null here.
  const config = Object.freeze({ ...values, secrets: Object.freeze(secrets) }) as Config;
  return { config, warnings: secretWarnings(current, previous) };
}

function readVariable<Name extends keyof typeof variables>(env: Environment, name: Name, faults: string[]) {
  const variable: Variable<unknown> = variables[name];
  const given = env[name];
  const text = given === undefined || given === "" ? variable.fallback(env) : given.trim();
  const value = variable.read(text) as ReturnType<(typeof variables)[Name]["read"]>;
  if (value === null) faults.push(`${name} is ${JSON.stringify(text)}; expected ${variable.expected}.`);
  return value;
}

function takeSecret(env: Environment, name: "WEBHOOK_SECRET" | "WEBHOOK_SECRET_PREVIOUS", faults: string[]) {
  const source = readSecretText(env, name);
  const fault = source.fault ?? secretFault(name, source.text);
  if (fault) faults.push(fault);
  return source.text;
}
