import { dirname, join, resolve } from "node:path";
import type { CommitStatus } from "#config/commit-status";
import type { NotifyTarget } from "#config/notify-file";
import type { Notify, Secrets } from "#config/project";
import { credentialsPath, stateDirectoryOf } from "#config/state-path";
import type { SystemUser } from "#platform/users";
import {
  looksLikeSecretFile,
  readEnvFiles,
  readSecretFile,
  secretsInText,
  secretsInVariable,
} from "#redaction/detect-secrets";
import {
  createRedactor,
  isTooShort,
  leastRedactedBytes,
  type Redactor,
  redactedPartsOf,
} from "#redaction/redactor";
import { childEnvironment, type EnvironmentOptions } from "./environment.ts";
import { ownerOf } from "./script-user.ts";

/** A secret that output must not show, with a name for people that says where it was found. */
export interface KnownSecret {
  readonly name: string;
  readonly value: string;
}

export interface SecretSources extends Omit<EnvironmentOptions, "user"> {
  readonly secrets: Secrets;
  readonly notify?: Notify;
  readonly commitStatus?: CommitStatus | null;
  /** Whether scripts run as the owner of the repository, if this process may become that user. Default: no. */
  readonly runsAsOwner?: boolean;
}

/**
 * Finds the secrets that a deploy script may print: those of the webhook, of the script's environment, of the repository's
 * environment files, of Docker and of git. It reads the files each time, because they may have changed.
 */
export function findSecrets(sources: SecretSources): readonly KnownSecret[] {
  const { secrets, notify, commitStatus, repoPath, scriptSecrets = {} } = sources;
  const { environment, user } = readIdentity(sources);
  const namedBy = user?.uid;
  const home = environment.HOME ?? "/";
  return [
    { name: "WEBHOOK_SECRET", value: secrets.current.reveal() },
    { name: "WEBHOOK_SECRET_PREVIOUS", value: secrets.previous?.reveal() ?? "" },
    { name: "COMMIT_STATUS_TOKEN_FILE", value: commitStatus?.token.reveal() ?? "" },
    ...(notify?.targets ?? []).flatMap(secretsOfTarget),
    ...Object.entries(scriptSecrets).map(([name, value]) => ({ name, value })),
    ...Object.entries(environment).flatMap(([name, value]) => secretsOfVariable(repoPath, { name, value })),
    ...secretsOfEnvFiles(repoPath, namedBy),
    ...secretsOfDocker(join(environment.DOCKER_CONFIG ?? join(home, ".docker"), "config.json")),
    ...passwordsIn("the settings of git", readGitSettings(repoPath, environment, namedBy)),
    ...passwordsIn("the stored passwords of git", readIfThere(join(home, ".git-credentials"))),
    ...passwordsIn(
      "the stored passwords of git",
      readIfThere(credentialsPath(stateDirectoryOf(environment))),
    ),
  ].filter(({ value }) => value !== "");
}

function secretsOfTarget({ name, url, key }: NotifyTarget): readonly KnownSecret[] {
  return [url, key].flatMap((secret) =>
    secret ? [{ name: `${name} in NOTIFY_FILE`, value: secret.reveal() }] : [],
  );
}

function secretsOfEnvFiles(repoPath: string, namedBy: number | undefined): readonly KnownSecret[] {
  return readEnvFiles(repoPath).flatMap(({ path, name, value }) =>
    secretsOfVariable(repoPath, { name, value, shownName: `${name} in ${path}`, namedBy }),
  );
}

/** Passwords that `docker login` stored. */
function secretsOfDocker(path: string): readonly KnownSecret[] {
  const values = secretsInVariable("config", readIfThere(path));
  return values.map((value) => ({ name: `a password in ${path}`, value }));
}

interface Variable {
  readonly name: string;
  readonly value: string;
  readonly shownName?: string;
  /** The user who set it, if that is not the one of this process. */
  readonly namedBy?: number | undefined;
}

function secretsOfVariable(
  repoPath: string,
  { name, value, shownName = name, namedBy }: Variable,
): readonly KnownSecret[] {
  const within = secretsInVariable(name, value).map((secret) => ({
    name: secret === value ? shownName : `a password in ${shownName}`,
    value: secret,
  }));
  if (!looksLikeSecretFile(name)) return within;
  return [
    ...within,
    {
      name: `the file that ${shownName} names`,
      value: readSecretFile(resolve(repoPath, value), { namedBy }),
    },
  ];
}

function passwordsIn(name: string, text: string): readonly KnownSecret[] {
  return secretsInText(text).map((value) => ({ name: `a password in ${name}`, value }));
}

/**
 * Creates a function that returns the redactor for the current output of a deploy script, or of git in its repository. It
 * builds a new one only if the secrets have changed.
 */
export function createScriptRedactor(sources: SecretSources): () => Redactor {
  let known: readonly string[] = [];
  let redactor: Redactor | null = null;
  return () => {
    const parts = findSecrets(sources).flatMap(({ value }) => redactedPartsOf(value));
    const isSame = parts.length === known.length && parts.every((part, index) => part === known[index]);
    redactor = redactor !== null && isSame ? redactor : createRedactor(parts);
    known = parts;
    return redactor;
  };
}

/** What a project's deploy script, and git in its repository, run with. */
export interface ProjectScript {
  readonly repoPath: string;
  /** The user that they run as; null: the user of this process. */
  readonly user: SystemUser | null;
  /** The environment of every child of the service. */
  readonly environment: Readonly<Record<string, string>>;
  /** A directory to make for their state; null: they use the one of the service. */
  readonly statePath: string | null;
  /** Redacts their output, with the secrets that are known now. */
  readonly redactor: () => Redactor;
}

/** What the checks of a script need. */
export type CheckedScript = Pick<ProjectScript, "repoPath" | "user" | "environment">;

/** Creates a function that returns what they run with now: the repository can get another owner. */
export function createProjectScript(sources: SecretSources): () => ProjectScript {
  const redactor = createScriptRedactor(sources);
  const { repoPath, scriptStatePath: statePath = null } = sources;
  return () => ({ repoPath, statePath, ...readIdentity(sources), redactor });
}

function readIdentity(sources: SecretSources): Pick<ProjectScript, "user" | "environment"> {
  const { env, scriptSecrets, repoPath, runsAsOwner = false } = sources;
  const user = runsAsOwner ? ownerOf(repoPath, env.DOCKER_HOST || scriptSecrets?.DOCKER_HOST) : null;
  return { user, environment: childEnvironment({ ...sources, user }) };
}

/** A sentence for each known secret that is too short to be redacted. */
export function findUnredacted(sources: SecretSources): readonly string[] {
  const tooShort = findSecrets(sources).filter(({ value }) => isTooShort(value));
  return Array.from(
    new Set(tooShort.map(({ name }) => name)),
    (name) =>
      `The value of ${name} has fewer than ${leastRedactedBytes} characters, too few to be redacted in what deploy.sh prints; make it longer if it is secret`,
  );
}

/** Files that include each other in a circle end here. */
const mostFiles = 30;

/**
 * The texts of all settings files that git reads in a repository: its own, the user's, the system's, and the files that
 * they include, under any condition. Git itself knows them exactly, but a process for that would delay every start of a
 * script.
 */
function readGitSettings(
  repoPath: string,
  env: Readonly<Record<string, string>>,
  namedBy: number | undefined,
): string {
  const home = env.HOME ?? "/";
  const left = [
    ...gitDirectories(join(repoPath, ".git"), namedBy).flatMap((path) => [
      join(path, "config"),
      join(path, "config.worktree"),
    ]),
    env.GIT_CONFIG_GLOBAL ?? join(home, ".gitconfig"),
    join(env.XDG_CONFIG_HOME ?? join(home, ".config"), "git/config"),
    env.GIT_CONFIG_SYSTEM ?? "/etc/gitconfig",
  ];
  const texts: string[] = [];
  for (const path of left) {
    if (texts.length === mostFiles) break;
    const text = readIfThere(path, namedBy);
    texts.push(text);
    for (const [, included = ""] of text.matchAll(/^[ \t]*path[ \t]*=[ \t]*"?([^"\n]+)/gim)) {
      left.push(resolve(dirname(path), included.trim().replace(/^~(?=\/)/, home)));
    }
  }
  return texts.join("\n");
}

const mostSettingsBytes = 1024 ** 2;

/** The text of the file at `path`, or nothing: a user can put anything in its place, and the service must go on. */
function readIfThere(path: string, namedBy?: number): string {
  return readSecretFile(path, { mostBytes: mostSettingsBytes, namedBy });
}

/** In a linked work tree and in a submodule, `.git` is a file that names the directory. */
function gitDirectories(path: string, namedBy: number | undefined): readonly string[] {
  const linked = /^gitdir: (.+)$/m.exec(readIfThere(path))?.[1];
  if (linked === undefined) return [path];
  const directory = resolve(dirname(path), linked);
  return [directory, resolve(directory, readIfThere(join(directory, "commondir"), namedBy).trim())];
}
