import { join, resolve } from "node:path";
import { defaultStatePath } from "../../config/state-path.ts";
import type { Secrets } from "../../config.ts";
import { readEnvFiles } from "../../redaction/env-files.ts";
import { readSecretFile } from "../../redaction/secret-file.ts";
import { looksLikeSecretFile } from "../../redaction/secret-names.ts";
import { secretsInText, secretsInVariable } from "../../redaction/secrets-in-variable.ts";
import { childEnvironment, type EnvironmentOptions } from "../environment.ts";
import { credentialsPath } from "./credentials-path.ts";
import { readGitSettings, readIfThere } from "./git-settings.ts";

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
