import { isIP } from "node:net";
import { dirname, join } from "node:path";
import { parseHostedRepository, statusHosts } from "./git-hosts.ts";
import { stateDirectoryOf } from "./server.ts";
import {
  absolutePath,
  checkNames,
  durationOrNever,
  parseAddressList,
  parseDurationMs,
  parseSizeBytes,
  pathPatterns,
  variableNames,
  wholeNumber,
  within,
} from "./values.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** One setting: a row of docs/configuration.md. */
export interface Setting<Value> {
  /** What it is, in Markdown. */
  readonly meaning: string;
  /** Its text if it is not set. */
  readonly fallback?: string | ((env: Environment) => string | null);
  /** What the docs say instead of `fallback`, in Markdown. */
  readonly shownFallback?: string;
  /** Ends "…; expected". */
  readonly expected: string;
  /** null: not as expected */
  readonly read: (text: string) => Value | null;
}

type Settings = Readonly<Record<string, Setting<unknown>>>;

export type Branch = (typeof branches)[number];

export const branches = ["main", "master"] as const;
export const notifyOns = ["failures", "all"] as const;
const logLevels = ["debug", "info", "warn", "error"] as const;

const path = { expected: "an absolute path", read: absolutePath };
const port = {
  expected: "a TCP port, 1 to 65535 (0 takes any free one)",
  read: (text: string) => wholeNumber(text, 0, 65_535),
};
const host = {
  expected: "an IP address of this machine, or localhost",
  read: (text: string) => (isIP(text) !== 0 || text === "localhost" ? text : null),
};
const addresses = {
  expected: "IP addresses, subnets such as 10.0.0.0/8, or private_ranges, separated by commas",
  read: parseAddressList,
};
const timeOrNever = {
  expected: "a duration from 1s to 24h such as 5m, or 0 for never",
  read: durationOrNever,
};

/** The settings of the service, whatever its projects are. */
export const serviceVariables = {
  WEBHOOK_PORT: { meaning: "TCP port it listens on", fallback: "9000", ...port },
  WEBHOOK_HOST: { meaning: "address it binds, also for the page", fallback: "0.0.0.0", ...host },
  WEBHOOK_BODY_LIMIT: {
    meaning: "largest request body",
    fallback: "25 MiB",
    expected: "a size from 1 KiB to 50 MiB, such as 25 MiB",
    read: (text: string) => within(parseSizeBytes(text), 1024, 50 * 1024 ** 2),
  },
  TRUSTED_PROXIES: {
    meaning:
      "proxies whose `X-Forwarded-For` is believed: addresses, subnets, `private_ranges` ([client addresses](set-up.md#client-addresses))",
    fallback: "",
    ...addresses,
  },
  STATE_PATH: {
    meaning: "directory of the database and the logs of deployments; on a local disk",
    fallback: stateDirectoryOf,
    shownFallback:
      "`$XDG_STATE_HOME/hotpush`, else `$HOME/.local/state/hotpush`; in the container `/var/lib/hotpush`",
    ...path,
  },
  SERVER_STATE_PATH: {
    meaning:
      "directory of the state of all services of a machine; each project's script gets a directory in it as its `STATE_PATH`",
    ...path,
  },
  PROJECTS_PATH: {
    meaning: "a directory with a file for each project, instead of the settings of one",
    ...path,
  },
  SECRETS_PATH: {
    meaning: "a directory with a file for each project: variables that only its script gets",
    fallback: ({ PROJECTS_PATH }) => (PROJECTS_PATH ? join(dirname(PROJECTS_PATH), "secrets") : null),
    shownFallback: "`secrets` beside `PROJECTS_PATH`",
    ...path,
  },
  MAX_RUNNING: {
    meaning: "how many projects may deploy at once",
    fallback: "1",
    expected: "a number from 1 to 64",
    read: (text: string) => wholeNumber(text, 1, 64),
  },
  SPOOL_PATH: {
    meaning: "the directory in which pushes wait until `hotpush run` has recorded them; on a local disk",
    shownFallback: "`spool` in `STATE_PATH`",
    ...path,
  },
  FRONT_SOCKET: {
    meaning: "the socket on which `hotpush front` calls `hotpush run`",
    shownFallback: "`front.sock` in `STATE_PATH`",
    ...path,
  },
  PAGE_URL: {
    meaning: "the address of the [page](page.md), such as `https://hotpush.example.com`",
    expected: "an https address without a path, such as https://hotpush.example.com (http on localhost only)",
    read: parsePageUrl,
  },
  PAGE_PORT: { meaning: "TCP port of the page", fallback: "9001", ...port },
  PAGE_BADGE: {
    meaning:
      "`1`: anybody may see [the badge](receipts.md#the-badge) of each project, without signing in; of `front` and of `run`",
    fallback: "0",
    ...oneOf(["1", "0"]),
  },
  METRICS_NETWORKS: {
    meaning: "who may read the [metrics](metrics.md) without a token: as `TRUSTED_PROXIES`",
    fallback: "",
    ...addresses,
  },
  SERVER_PATH: {
    meaning: "directory of the [server](server.md), which `hotpush run` keeps as its files say",
    ...path,
  },
  SHUTDOWN_GRACE: {
    meaning: "how long a running deployment may go on when the service stops",
    fallback: "5s",
    expected: "a duration from 0 to 24h, such as 5s",
    read: parseDurationMs,
  },
  LOG_LEVEL: {
    meaning: "`debug`, `info`, `warn` or `error`",
    fallback: "info",
    ...oneOf(logLevels),
  },
} as const satisfies Settings;

/** The settings of one project. */
export const projectVariables = {
  REPO_PATH: {
    meaning: "root of the repository; the script is `REPO_PATH/deploy.sh`",
    fallback: "/app",
    ...path,
  },
  REPOSITORY: {
    meaning: "`owner/name`: pushes of any other repository are ignored",
    expected: "owner/name, as the git host shows it",
    read: (text: string) => (/^[\w.~-]+(\/[\w.~-]+)+$/.test(text) ? text : null),
  },
  BRANCH: {
    meaning: "`main` or `master`: only this branch is deployed. `hotpush init` sets it",
    shownFallback: "both, and no other, are deployed",
    ...oneOf(branches),
  },
  ALLOWED_SIGNERS: {
    meaning:
      "path of a file of SSH and GPG keys, outside of the repository: only commits that one of them signed are deployed ([signed commits](signed-commits.md))",
    ...path,
    expected: "the absolute path of a file outside of the repository",
  },
  DEPLOY_TIMEOUT: {
    meaning: "longest run of the script",
    fallback: "30m",
    expected: "a duration from 1s to 24h, such as 30m",
    read: (text: string) => within(parseDurationMs(text), 1_000, 24 * 3_600_000),
  },
  DEPLOY_SILENCE: {
    meaning:
      "a warning is logged if the script prints nothing for so long, with the step and the last line; `0` disables it",
    fallback: "10m",
    ...timeOrNever,
  },
  DEPLOY_ENV: {
    meaning: "names of further variables that the script may see, separated by commas",
    fallback: "",
    expected: "names of variables, separated by commas, none of them a webhook secret",
    read: variableNames,
  },
  DEPLOY_PATHS: {
    meaning:
      "a push is deployed only if it changes a file that these patterns name, separated by spaces; `!` leaves files out ([a repository with several projects](projects.md#a-repository-with-several-projects))",
    fallback: "",
    expected:
      "patterns from the root of the repository such as apps/shop/**, separated by spaces; ! leaves files out",
    read: pathPatterns,
  },
  DEPLOY_AFTER: {
    meaning:
      "`checks`, or the names of some, separated by commas: a push waits until these have succeeded at the git host ([green checks](git-hosts.md#green-checks))",
    expected: "checks, or names of checks separated by commas",
    read: checkNames,
  },
  DEPLOY_IMAGES: {
    meaning:
      "`watch`: an image that CI has pushed under a name in the compose file is deployed, every `CATCH_UP_INTERVAL` at the latest ([images that CI builds](rollout.md#images-that-ci-builds))",
    shownFallback: "images change only with a commit, or by `hotpush rollout --pull`",
    ...oneOf(["watch"]),
  },
  CATCH_UP_INTERVAL: {
    meaning: "how often the remote is asked for pushes that no delivery reported; `0` is never",
    fallback: "5m",
    ...timeOrNever,
  },
  COMMIT_STATUS_URL: {
    meaning:
      "address of the repository at the git host, such as `https://github.com/octo/app`: results are shown on its commits ([git hosts](git-hosts.md#results-on-the-commit))",
    expected: `the address of a repository such as https://github.com/octo/app, or with the kind of its host gitea+https://git.example.com/octo/app (${statusHosts.join(", ")})`,
    read: parseHostedRepository,
  },
  COMMIT_STATUS_TOKEN_FILE: {
    meaning: "path of a file with the token for that, mode 0600",
    ...path,
  },
  NOTIFY_FILE: {
    meaning:
      "path of a file with the targets of notifications: Slack, Discord, ntfy, Apprise, signed webhooks ([notifications](notifications.md))",
    ...path,
  },
  NOTIFY_ON: {
    meaning: "`failures` (and the first success after one) or `all`",
    fallback: "failures",
    ...oneOf(notifyOns),
  },
} as const satisfies Settings;

/** The secrets of one project. `readSecretText` reads them, also from the file that `<name>_FILE` names. */
export const secretVariables = {
  WEBHOOK_SECRET: {
    meaning: "shared secret of the signature, or `WEBHOOK_SECRET_FILE` with the path of a file that holds it",
    shownFallback: "a placeholder that the service refuses",
  },
  WEBHOOK_SECRET_PREVIOUS: {
    meaning: "accepted as well while you rotate the secret; or `WEBHOOK_SECRET_PREVIOUS_FILE`",
  },
} as const satisfies Readonly<Record<string, Pick<Setting<unknown>, "meaning" | "shownFallback">>>;

/** Every variable but the secrets. */
export const variables = { ...serviceVariables, ...projectVariables };

type Values<Table extends Settings> = {
  readonly [Name in keyof Table]:
    | NonNullable<ReturnType<Table[Name]["read"]>>
    | (Table[Name] extends { readonly fallback: string | ((env: Environment) => string) } ? never : null);
};

/**
 * Reads every setting of `table` from `env`.
 *
 * @param faults gets a sentence for each value that is not as expected; the values may only be used if there is none
 */
export function readVariables<Table extends Settings>(
  table: Table,
  env: Environment,
  faults: string[],
): Values<Table> {
  const entries = Object.entries<Setting<unknown>>(table).map(([name, { fallback, expected, read }]) => {
    const usual = typeof fallback === "function" ? fallback(env) : fallback;
    const text = env[name] ? env[name].trim() : (usual ?? null);
    if (text === null || (text === "" && fallback === undefined)) return [name, null];
    const value = read(text);
    if (value === null) faults.push(`${name} is ${JSON.stringify(text)}; expected ${expected}.`);
    return [name, value];
  });
  return Object.fromEntries(entries) as Values<Table>;
}

function oneOf<const Text extends string>(texts: readonly Text[]) {
  const read = (text: string) => texts.find((one) => one === text) ?? null;
  return { expected: texts.join(" or "), read };
}

/** The page has a host name of its own: below the address of an app, that app could act for its visitors. */
export function parsePageUrl(text: string): URL | null {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || `${url.origin}/` !== url.href) return null;
  // A browser keeps the session only if the connection is safe.
  return url.protocol === "https:" || (url.protocol === "http:" && url.hostname === "localhost") ? url : null;
}
