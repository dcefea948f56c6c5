import {
  type CommitStatus,
  type HostEnvironment,
  parseHostedRepository,
  readCommitStatus,
} from "./commit-status.ts";
import { parseDurationMs } from "./duration.ts";
import { type NotifyTarget, readNotifyFile } from "./notify-file.ts";
import { type Environment, readVariables, type Variable } from "./read-variables.ts";
import { makeSecret, readSecretText, type Secret, secretFault, secretWarnings } from "./secret.ts";
import { readSigners } from "./signers-file.ts";
import { absolutePath, durationOrNever, pathPatterns, variableNames, within } from "./values.ts";

/** The settings of one project: its repository, its secret, and how it is deployed. */
export interface ProjectSettings {
  readonly secrets: Secrets;
  readonly repoPath: string;
  readonly repository: string | null;
  readonly branch: Branch | null;
  /** Path of a file of keys; null: commits need no signature. */
  readonly allowedSigners: string | null;
  readonly deployTimeoutMs: number;
  readonly deploySilenceMs: number;
  readonly deployEnv: readonly string[];
  /** Patterns of what is deployed; none: everything. One that begins with `!` leaves files out. */
  readonly deployPaths: readonly string[];
  readonly catchUpIntervalMs: number;
  readonly notify: Notify;
  /** null: no results are shown on commits. */
  readonly commitStatus: CommitStatus | null;
  /** null: no deployments to an environment are shown at the git host. */
  readonly environment: HostEnvironment | null;
}

export interface Secrets {
  readonly current: Secret;
  readonly previous: Secret | null;
}

/** Who is sent a notification, and about what: failures and the first success after one, or everything. */
export interface Notify {
  readonly targets: readonly NotifyTarget[];
  readonly on: (typeof notifyOns)[number];
}

export type Branch = (typeof branches)[number];

export const branches = ["main", "master"] as const;

const notifyOns = ["failures", "all"] as const;

export const projectVariables = {
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
  DEPLOY_PATHS: {
    fallback: () => "",
    expected:
      "patterns from the root of the repository such as apps/shop/**, separated by spaces; ! leaves files out",
    read: pathPatterns,
  },
  CATCH_UP_INTERVAL: {
    fallback: () => "5m",
    expected: "a duration from 1s to 24h such as 5m, or 0 for never",
    read: durationOrNever,
  },
  COMMIT_STATUS_URL: {
    fallback: () => "",
    expected:
      "the address of a repository such as https://github.com/octo/app, or with the kind of its host gitea+https://git.example.com/octo/app (github, gitea, forgejo, gitlab, bitbucket)",
    read: (text) => (text === "" ? "" : parseHostedRepository(text)),
  },
  COMMIT_STATUS_TOKEN_FILE: {
    fallback: () => "",
    expected: "the absolute path of a file",
    read: (text) => (text === "" ? "" : absolutePath(text)),
  },
  COMMIT_STATUS_ENVIRONMENT: {
    fallback: () => "",
    expected: "the name of an environment such as production: at most 100 letters, digits and - _ . /",
    read: (text) => (/^[\w./-]{0,100}$/.test(text) ? text : null),
  },
  COMMIT_STATUS_ENVIRONMENT_URL: {
    fallback: () => "",
    expected: "the address of the app, such as https://shop.example.com",
    read: (text) => (text === "" || (/^https?:\/\//.test(text) && URL.canParse(text)) ? text : null),
  },
  NOTIFY_FILE: {
    fallback: () => "",
    expected: "the absolute path of a file",
    read: (text) => (text === "" ? "" : absolutePath(text)),
  },
  NOTIFY_ON: {
    fallback: () => "failures",
    expected: notifyOns.join(" or "),
    read: (text) => notifyOns.find((one) => one === text) ?? null,
  },
} as const satisfies Record<string, Variable<unknown>>;

export interface ReadProject {
  readonly settings: ProjectSettings;
  /** Settings that are allowed but unwise. */
  readonly warnings: readonly string[];
}

/**
 * Reads the settings of one project.
 *
 * @param faults gets a sentence for each error; the settings may only be used if there is none
 * @param options.readsFiles false for a process that may not read the files of ALLOWED_SIGNERS, NOTIFY_FILE and COMMIT_STATUS_TOKEN_FILE
 */
export function readProjectSettings(
  env: Environment,
  faults: string[],
  { readsFiles = true }: { readonly readsFiles?: boolean } = {},
): ReadProject {
  const values = readVariables(projectVariables, env, faults);
  const current = takeSecret(env, "WEBHOOK_SECRET", faults);
  const previous = takeSecret(env, "WEBHOOK_SECRET_PREVIOUS", faults);
  if (values.ALLOWED_SIGNERS && readsFiles) {
    const signers = readSigners(values.ALLOWED_SIGNERS, values.REPO_PATH ?? "/app");
    if (typeof signers === "string") faults.push(signers);
  }
  const targets = values.NOTIFY_FILE && readsFiles ? readNotifyFile(values.NOTIFY_FILE) : [];
  const { COMMIT_STATUS_URL: repository, COMMIT_STATUS_TOKEN_FILE: tokenPath } = values;
  const status = readsFiles ? readCommitStatus(repository || null, tokenPath || null) : null;
  const settings = Object.freeze({
    repoPath: values.REPO_PATH,
    repository: values.REPOSITORY || null,
    branch: values.BRANCH || null,
    allowedSigners: values.ALLOWED_SIGNERS || null,
    deployTimeoutMs: values.DEPLOY_TIMEOUT,
    deploySilenceMs: values.DEPLOY_SILENCE,
    deployEnv: values.DEPLOY_ENV,
    deployPaths: values.DEPLOY_PATHS,
    catchUpIntervalMs: values.CATCH_UP_INTERVAL,
    notify: Object.freeze({ targets: typeof targets === "string" ? [] : targets, on: values.NOTIFY_ON }),
    environment: values.COMMIT_STATUS_ENVIRONMENT
      ? Object.freeze({
          name: values.COMMIT_STATUS_ENVIRONMENT,
          url: values.COMMIT_STATUS_ENVIRONMENT_URL || null,
        })
      : null,
    commitStatus: typeof status === "string" ? null : status,
    secrets: Object.freeze({
      current: makeSecret(current),
      previous: previous === "" ? null : makeSecret(previous),
    }),
  });
  // A project is deployed even if nobody can be sent its results.
  const unsent = [
    ...(typeof targets === "string" ? [`${targets} Nobody is notified.`] : []),
    ...(typeof status === "string" ? [`${status} No result is shown on a commit.`] : []),
  ];
  return { settings, warnings: [...secretWarnings(current, previous), ...unsent] };
}

function takeSecret(env: Environment, name: "WEBHOOK_SECRET" | "WEBHOOK_SECRET_PREVIOUS", faults: string[]) {
  const source = readSecretText(env, name);
  const fault = source.fault ?? secretFault(name, source.text);
  if (fault) faults.push(fault);
  return source.text;
}
