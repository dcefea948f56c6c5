import { readCommitStatus, statusHosts } from "./commit-status.ts";
import { type NotifyTarget, readNotifyFile } from "./notify-file.ts";
import { makeSecret, readSecretText, type Secret, secretFault, secretWarnings } from "./secret.ts";
import {
  type Environment,
  type notifyOns,
  projectVariables,
  readVariables,
  type secretVariables,
} from "./settings.ts";
import { readSigners } from "./signers-file.ts";

/** The settings of one project: its repository, its secret, and how it is deployed. */
export type ProjectSettings = ReturnType<typeof readProjectSettings>["settings"];

export interface Secrets {
  readonly current: Secret;
  readonly previous: Secret | null;
}

/** Who is sent a notification, and about what: failures and the first success after one, or everything. */
export interface Notify {
  readonly targets: readonly NotifyTarget[];
  readonly on: (typeof notifyOns)[number];
}

/**
 * Reads the settings of one project.
 *
 * @param faults gets a sentence for each error; the settings may only be used if there is none
 * @returns with `warnings` for settings that are allowed but unwise
 * @param options.readsFiles false for a process that may not read the files of ALLOWED_SIGNERS, NOTIFY_FILE and COMMIT_STATUS_TOKEN_FILE
 */
export function readProjectSettings(
  env: Environment,
  faults: string[],
  { readsFiles = true }: { readonly readsFiles?: boolean } = {},
) {
  const values = readVariables(projectVariables, env, faults);
  const current = takeSecret(env, "WEBHOOK_SECRET", faults);
  const previous = takeSecret(env, "WEBHOOK_SECRET_PREVIOUS", faults);
  if (values.ALLOWED_SIGNERS && readsFiles) {
    const signers = readSigners(values.ALLOWED_SIGNERS, values.REPO_PATH ?? "/app");
    if (typeof signers === "string") faults.push(signers);
  }
  const targets = values.NOTIFY_FILE && readsFiles ? readNotifyFile(values.NOTIFY_FILE) : [];
  const { COMMIT_STATUS_URL: repository, COMMIT_STATUS_TOKEN_FILE: tokenPath } = values;
  const status = readsFiles ? readCommitStatus(repository, tokenPath) : null;
  if (values.DEPLOY_AFTER !== null) {
    if (repository === null || tokenPath === null) faults.push(noChecks);
    else if (typeof status === "string") faults.push(`${status} DEPLOY_AFTER needs it to read checks.`);
  }
  const settings = Object.freeze({
    repoPath: values.REPO_PATH,
    repository: values.REPOSITORY,
    branch: values.BRANCH,
    allowedSigners: values.ALLOWED_SIGNERS,
    deployTimeoutMs: values.DEPLOY_TIMEOUT,
    deploySilenceMs: values.DEPLOY_SILENCE,
    deployEnv: values.DEPLOY_ENV,
    deployPaths: values.DEPLOY_PATHS,
    deployAfter: values.DEPLOY_AFTER,
    catchUpIntervalMs: values.CATCH_UP_INTERVAL,
    notify: Object.freeze({ targets: typeof targets === "string" ? [] : targets, on: values.NOTIFY_ON }),
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
  return { settings, warnings: [...secretWarnings(current), ...unsent] };
}

const noChecks = `DEPLOY_AFTER is set, and COMMIT_STATUS_URL or COMMIT_STATUS_TOKEN_FILE is not: with that token the checks of a commit are read, at a host that has them (${statusHosts.join(", ")}).`;

function takeSecret(env: Environment, name: keyof typeof secretVariables, faults: string[]) {
  const source = readSecretText(env, name);
  const fault = source.fault ?? secretFault(name, source.text);
  if (fault) faults.push(fault);
  return source.text;
}
