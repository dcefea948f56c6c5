import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseEnv } from "node:util";
import { defaultStatePath } from "../../config/state-path.ts";
import type { Secrets } from "../../config.ts";
import { looksLikeSecretFile, looksSecret } from "../../redaction/secret-names.ts";
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
    ...secretsInText("the settings of git", readGitSettings(repoPath, environment)),
    ...secretsInText("the stored passwords of git", readIfThere(join(home, ".git-credentials"))),
    ...secretsInText(
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

function secretsOfVariable(
  repoPath: string,
  name: string,
  value: string,
  told: string = name,
): readonly KnownSecret[] {
  const within = secretsInText(told, value);
  if (looksLikeSecretFile(name)) return [...within, ...secretInFile(told, resolve(repoPath, value))];
  const isWhole = looksSecret(name) && !isPath(value);
  return isWhole ? [{ name: told, value }, ...within] : within;
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

/** A path to a key says nothing of the key, and is in half of what git and ssh print. */
function isPath(value: string): boolean {
  return value.startsWith("/") && existsSync(value);
}

/** Passwords in URLs, and what a header `Authorization` says. */
function secretsInText(name: string, text: string): readonly KnownSecret[] {
  const all = (pattern: RegExp) => Array.from(text.matchAll(pattern), ([, given = ""]) => given);
  const users = all(/\b[a-z][a-z\d+.-]*:\/\/([^\s/?#"']+)@/gi);
  const basic = all(/\bauthorization: *basic +([^\s"']+)/gi);
  const bearer = all(/\bauthorization: *(?:bearer|token) +([^\s"']+)/gi);
  const decoded = basic.map((given) => Buffer.from(given, "base64").toString());
  const values = new Set([...basic, ...bearer, ...[...users, ...decoded].flatMap(passwordsOf)]);
  return Array.from(values, (value) => ({ name: `a password in ${name}`, value }));
}

/** Of `name:password` the password, and the name too where it is as long as a token. */
function passwordsOf(user: string): readonly string[] {
  const leastTokenLength = 20;
  const [name = "", ...rest] = user.split(":");
  const given = [name.length < leastTokenLength ? "" : name, rest.join(":")].filter((text) => text !== "");
  return given.flatMap((text) => [text, percentDecoded(text)]);
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
