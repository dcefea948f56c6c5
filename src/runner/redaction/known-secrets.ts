import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseEnv } from "node:util";
import { defaultStatePath } from "../../config/state-path.ts";
import type { Secrets } from "../../config.ts";
import { looksLikeSecretFile } from "../../redaction/secret-names.ts";
import { secretsInText, secretsInVariable } from "../../redaction/secrets-in-variable.ts";
import { childEnvironment, type EnvironmentOptions } from "../environment.ts";
import { credentialsPath } from "./credentials-path.ts";
import { readGitSettings, readIfThere } from "./git-settings.ts";

/** A secret in a file is a password or a key; what is larger is something else. */
const mostSecretFileBytes = 64 * 1024;

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
 * repository's `.env`, and of git. Looks anew each time, for the files may have changed.
 */
export function findSecrets(sources: SecretSources): readonly KnownSecret[] {
  const { secrets, repoPath } = sources;
  const environment = childEnvironment(sources);
  const home = environment.HOME ?? "/";
  return [
    { name: "WEBHOOK_SECRET", value: secrets.current.reveal() },
    { name: "WEBHOOK_SECRET_PREVIOUS", value: secrets.previous?.reveal() ?? "" },
    ...Object.entries(environment).flatMap(([name, value]) => secretsOfVariable(repoPath, name, value)),
    ...secretsOfDotenv(repoPath),
    ...secretsOfDocker(join(environment.DOCKER_CONFIG ?? join(home, ".docker"), "config.json")),
    ...passwordsIn("the settings of git", readGitSettings(repoPath, environment)),
    ...passwordsIn("the stored passwords of git", readIfThere(join(home, ".git-credentials"))),
    ...passwordsIn(
      "the stored passwords of git",
      readIfThere(credentialsPath(environment.STATE_PATH || defaultStatePath(environment))),
    ),
  ].filter(({ value }) => value !== "");
}

function secretsOfDotenv(repoPath: string): readonly KnownSecret[] {
  const path = join(repoPath, ".env");
  const variables = parseEnv(readIfThere(path));
  return Object.entries(variables).flatMap(([name, value = ""]) =>
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
  return looksLikeSecretFile(name) ? [...within, ...secretInFile(told, resolve(repoPath, value))] : within;
}

function passwordsIn(name: string, text: string): readonly KnownSecret[] {
  return secretsInText(text).map((value) => ({ name: `a password in ${name}`, value }));
}

function secretInFile(told: string, path: string): readonly KnownSecret[] {
  if (!isSmallFile(path)) return [];
  return [{ name: `the file that ${told} names`, value: readIfThere(path).trim() }];
}

/** Reading a pipe would wait for ever. */
function isSmallFile(path: string): boolean {
  try {
    const stats = statSync(path);
    return stats.isFile() && stats.size <= mostSecretFileBytes;
  } catch {
    return false;
  }
}
