import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { credentialsPath, defaultStatePath } from "../config/state-path.ts";
import type { Secrets } from "../config.ts";
import { looksLikeSecretFile, secretsInText, secretsInVariable } from "../redaction/detect-secrets.ts";
import {
  createRedactor,
  isTooShort,
  leastRedactedBytes,
  type Redactor,
  redactedPartsOf,
} from "../redaction/redactor.ts";
import { readEnvFiles, readSecretFile } from "../redaction/secret-files.ts";
import { childEnvironment, type EnvironmentOptions } from "./environment.ts";

/** A secret that output is not to show, and where it was found, for a person. */
export interface KnownSecret {
  readonly name: string;
  readonly value: string;
}

export interface SecretSources extends EnvironmentOptions {
  readonly secrets: Secrets;
}

/**
 * Finds the secrets that a deploy script may come upon: those of the webhook, in the script's environment, in the
 * repository's environment files, and of git. Looks anew each time, for the files may have changed.
 */
export function findSecrets(sources: SecretSources): readonly KnownSecret[] {
  const { secrets, repoPath } = sources;
  const environment = childEnvironment(sources);
  const home = environment.HOME ?? "/";
  return [
    { name: "WEBHOOK_SECRET", value: secrets.current.reveal() },
    { name: "WEBHOOK_SECRET_PREVIOUS", value: secrets.previous?.reveal() ?? "" },
    ...Object.entries(environment).flatMap(([name, value]) => secretsOfVariable(repoPath, name, value)),
    ...secretsOfEnvFiles(repoPath),
    ...secretsOfDocker(join(environment.DOCKER_CONFIG ?? join(home, ".docker"), "config.json")),
    ...passwordsIn("the settings of git", readGitSettings(repoPath, environment)),
    ...passwordsIn("the stored passwords of git", readIfThere(join(home, ".git-credentials"))),
    ...passwordsIn(
      "the stored passwords of git",
      readIfThere(credentialsPath(environment.STATE_PATH || defaultStatePath(environment))),
    ),
  ].filter(({ value }) => value !== "");
}

function secretsOfEnvFiles(repoPath: string): readonly KnownSecret[] {
  return readEnvFiles(repoPath).flatMap(({ path, name, value }) =>
    secretsOfVariable(repoPath, name, value, `${name} in ${path}`),
  );
}

/** What `docker login` stored. */
function secretsOfDocker(path: string): readonly KnownSecret[] {
  const values = secretsInVariable("config", readIfThere(path));
  return values.map((value) => ({ name: `a password in ${path}`, value }));
}

function secretsOfVariable(
  repoPath: string,
  name: string,
  value: string,
  told: string = name,
): readonly KnownSecret[] {
  const within = secretsInVariable(name, value).map((secret) => ({
    name: secret === value ? told : `a password in ${told}`,
    value: secret,
  }));
  if (!looksLikeSecretFile(name)) return within;
  return [
    ...within,
    { name: `the file that ${told} names`, value: readSecretFile(resolve(repoPath, value)) },
  ];
}

function passwordsIn(name: string, text: string): readonly KnownSecret[] {
  return secretsInText(text).map((value) => ({ name: `a password in ${name}`, value }));
}

/**
 * Makes a function that gives the redactor for what a deploy script, or git in its repository, prints at the moment. A new
 * one is only built where the secrets have changed.
 */
export function createScriptRedactor(sources: SecretSources): () => Redactor {
  let known: readonly string[] = [];
  let redactor = createRedactor(known);
  return () => {
    const parts = findSecrets(sources).flatMap(({ value }) => redactedPartsOf(value));
    const isSame = parts.length === known.length && parts.every((part, index) => part === known[index]);
    if (!isSame) redactor = createRedactor(parts);
    known = parts;
    return redactor;
  };
}

/** A sentence for each secret that is known and too short for its place in output to be found. */
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
 * The texts of all files of settings that git reads in a repository: its own, its user's, the system's, and what they
 * include, under whatever condition. Git itself could say it exactly, in a process of its own, which would hold up each
 * start of a script.
 */
export function readGitSettings(repoPath: string, env: Readonly<Record<string, string>>): string {
  const home = env.HOME ?? "/";
  const left = [
    ...gitDirectories(join(repoPath, ".git")).flatMap((path) => [
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
    const text = readIfThere(path);
    texts.push(text);
    for (const [, included = ""] of text.matchAll(/^[ \t]*path[ \t]*=[ \t]*"?([^"\n]+)/gim)) {
      left.push(resolve(dirname(path), included.trim().replace(/^~(?=\/)/, home)));
    }
  }
  return texts.join("\n");
}

/** The text of the file at `path`, or nothing where it is not there or not ours to read. */
export function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** Of a further work tree, and of a submodule, `.git` is a file that names the directory. */
function gitDirectories(path: string): readonly string[] {
  const linked = /^gitdir: (.+)$/m.exec(readIfThere(path))?.[1];
  if (linked === undefined) return [path];
  const directory = resolve(dirname(path), linked);
  return [directory, resolve(directory, readIfThere(join(directory, "commondir")).trim())];
}
