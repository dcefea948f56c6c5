import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseEnv } from "node:util";
import type { Command } from "commander";
import type { StatusJson } from "#calls/shapes";
import { secretFault } from "#config/secret";
import { asWritten, rawValue, withoutVariable, withVariable } from "#platform/env-file";
import { ownUid, rewriteFile, statOf } from "#platform/files";
import { openTerminal } from "#platform/terminal";
import { CommandError } from "#problems";
import { chooseProject, findServer } from "#setup/server";
import { type CommandContext, newCommand, print, projectOption, refuse } from "./command.ts";
import { accessService } from "./service-access.ts";

const [current, previous] = ["WEBHOOK_SECRET", "WEBHOOK_SECRET_PREVIOUS"] as const;
const secretBytes = 32;

interface SecretOptions {
  readonly envFile?: string;
  readonly project?: string;
  readonly stdin?: boolean;
  readonly show?: boolean;
  readonly force?: boolean;
}

/** `hotpush secret`: rotates the secret of the webhook in two steps, between which both secrets are accepted. */
export function makeSecretCommand({ env, finish }: CommandContext): Command {
  const command = newCommand("secret", "Rotate the secret of the webhook without losing a push.", [
    "hotpush secret rotate          make a new one; the old one stays valid",
    "hotpush secret drop-previous   the old one is no longer accepted",
  ]);
  const envPath = [
    "--env-file <path>",
    "the file that the service reads (default: that of the project, else .env here or of REPO_PATH)",
  ] as const;
  const rotate = newCommand(
    "rotate",
    "Make a new secret of 32 bytes in the file of the project, or in the .env file of the service, or in the file that its WEBHOOK_SECRET_FILE names. The old one is kept as WEBHOOK_SECRET_PREVIOUS. Prints what to do next; the new secret is shown on a terminal only.",
    ["hotpush secret rotate", "hotpush secret rotate --env-file /etc/hotpush.env"],
  )
    .summary("Make a new secret; the old one is still accepted")
    .option(...envPath)
    .addOption(projectOption("the project whose secret it is, if there are several"))
    .option("--stdin", "the git host made the new one (GitLab, Pagure): read it from standard input")
    .option("--show", "show the new one even if output is piped")
    .option("--force", "discard an existing previous secret")
    .action(async (options: SecretOptions) => finish(await rotateIn(options, env)));
  const drop = newCommand(
    "drop-previous",
    "Remove the previous secret from the .env file of the service, if that is safe: see hotpush status.",
    ["hotpush secret drop-previous", "hotpush secret drop-previous --force   without asking the service"],
  )
    .summary("Stop accepting the old secret")
    .option(...envPath)
    .addOption(projectOption("the project whose secret it is, if there are several"))
    .option("--force", "do not ask whether it is safe")
    .action(async (options: SecretOptions) => finish(await dropFrom(options, env)));
  return command.addCommand(rotate).addCommand(drop);
}

async function rotateIn(options: SecretOptions, env: NodeJS.ProcessEnv): Promise<number> {
  const { stdin: isGiven = false, show = false, force = false } = options;
  const file = chooseFile(options, env);
  const secrets = await fetchSecrets(env, file.project);
  const host = secrets?.current.host ?? secrets?.previous?.host ?? null;
  if (!isGiven && (host === "gitlab" || host === "pagure")) {
    return refuse(
      "This git host makes the secret itself. Make a new one there, and give it to: hotpush secret rotate --stdin",
    );
  }
  const given = isGiven ? { secret: readFileSync(0, "utf8").trim() } : {};
  const { secret, secretPath } = rotateSecret(file.path, { ...given, isReplacingPrevious: force });
  const isShown = !isGiven && (openTerminal(process.stdout, env).isInteractive || show);
  const form = isGiven
    ? []
    : formLines(host, isShown ? secret : `what is in ${secretPath} now (with --show it is printed here)`);
  print(...rotationLines(secretPath, form, file));
  return 0;
}

const hostTitles: Readonly<Record<string, string>> = {
  github: "GitHub",
  gitea: "Gitea",
  forgejo: "Forgejo",
  gogs: "Gogs",
  gitlab: "GitLab",
  "bitbucket-cloud": "Bitbucket",
  "bitbucket-data-center": "Bitbucket",
  pagure: "Pagure",
  gitness: "Gitness",
};

/** @param secret the new one, or a text that says where it is */
function formLines(host: string | null, secret: string): readonly string[] {
  const title = (host && hostTitles[host]) ?? "the git host";
  return [`Then, at ${title}, in the form of the webhook, set the field Secret to:`, `  ${secret}`];
}

/** What a person does after a rotation, in an order in which no push is refused. */
function rotationLines(secretPath: string, form: readonly string[], file: SecretFile): readonly string[] {
  return [
    `The new secret is in ${secretPath}. The old one is still accepted,`,
    "as the previous one, so that no push is refused meanwhile.",
    "",
    ...(file.isReadAgain ? readAgain : restartFirst),
    ...form,
    "Then push. When hotpush status says that the previous one is safe to drop:",
    `  hotpush secret drop-previous${file.option}`,
  ];
}

const readAgain = ["The service reads both within 5 seconds."];
const restartFirst = [
  "First restart the service, so that it reads both:",
  "  systemctl restart hotpush        or, in a container:",
  "  docker compose up -d hotpush     or, in a Swarm, for each of both:",
  "  docker service update --env-add WEBHOOK_SECRET=… shop_hotpush",
];

async function dropFrom(options: SecretOptions, env: NodeJS.ProcessEnv): Promise<number> {
  const { path, project, isReadAgain, option } = chooseFile(options, env);
  const reason = options.force ? null : whyKeep(await fetchSecrets(env, project));
  if (reason !== null)
    return refuse(`${reason} To drop it anyway: hotpush secret drop-previous --force${option}`);
  dropPreviousSecret(path);
  const then = isReadAgain
    ? "The service no longer accepts it within 5 seconds."
    : "Restart the service, so that it no longer accepts it.";
  print(`The previous secret is removed from ${path}. ${then}`);
  return 0;
}

function whyKeep(secrets: StatusJson["secrets"] | null): string | null {
  if (secrets === null)
    return "the service cannot be asked whether it is safe. If it has several projects, add --project <name>.";
  if (secrets.previous === null)
    return "the service runs without a previous secret: restart it, if you have just rotated.";
  return secrets.canDropPrevious ? null : secrets.advice;
}

/** The file with the secret that a command changes. */
interface SecretFile {
  readonly path: string;
  /** The project whose secret it is, as far as it is known. */
  readonly project: string | undefined;
  /** Whether the service notices a change by itself, because it is the file of a project. */
  readonly isReadAgain: boolean;
  /** The option with which the next command finds it too. */
  readonly option: string;
}

function chooseFile({ envFile, project }: SecretOptions, env: NodeJS.ProcessEnv): SecretFile {
  if (envFile !== undefined)
    return { path: envFile, project, isReadAgain: false, option: ` --env-file ${envFile}` };
  const server = findServer(env);
  const found = server && chooseProject(server, ".", project);
  if (found === null) return { path: usualEnvFile(env), project, isReadAgain: false, option: "" };
  const option = project === undefined ? "" : ` --project ${project}`;
  return { path: found.file, project: found.name, isReadAgain: true, option };
}

/** In the image the working directory has no `.env`: compose reads that of the repository, and passes its values on. */
function usualEnvFile({ REPO_PATH: repoPath }: NodeJS.ProcessEnv): string {
  return repoPath && !existsSync(".env") ? join(repoPath, ".env") : ".env";
}

/**
 * What the service knows about the secrets of a project, or null if it cannot be reached. The working directory does not
 * say which project: the file of another one may be changed.
 */
async function fetchSecrets(env: NodeJS.ProcessEnv, project?: string): Promise<StatusJson["secrets"] | null> {
  try {
    const status = await accessService(env, { project, directory: null }).call("status", {});
    return "secrets" in status ? status.secrets : null;
  } catch {
    return null;
  }
}

/**
 * Replaces the secret in the `.env` file at `path`, or in the file that its WEBHOOK_SECRET_FILE names, and keeps the old one
 * as the previous secret. All other lines stay as they are.
 *
 * @param options.secret the new one, if the git host made it; else 32 random bytes in hex
 * @param options.isReplacingPrevious whether an existing previous secret may be discarded
 * @returns the new secret, and the file it is in
 * @throws CommandError if the file cannot be read or written, or an earlier rotation is not finished
 */
function rotateSecret(
  path: string,
  options: { readonly secret?: string; readonly isReplacingPrevious: boolean },
): { readonly secret: string; readonly secretPath: string } {
  const text = readText(path);
  const secret = options.secret ?? randomBytes(secretBytes).toString("hex");
  const fault = secretFault(current, secret);
  if (fault) throw new CommandError(fault);
  const { old, isInFile, secretPath, previousPath } = locateSecrets(text, path);
  if (hasPrevious(text) && !options.isReplacingPrevious) {
    throw new CommandError(
      `${path} has a previous secret already, so an earlier rotation is not finished. Finish it with: hotpush secret drop-previous; or discard the previous secret with --force.`,
    );
  }
  if (old === secret)
    throw new CommandError("The new secret is the same as the old one. Nothing was changed.");
  if (!isInFile) {
    const raw = asWritten(secret);
    if (raw === null) throw unwritable(path);
    const kept = old === "" ? text : withVariable(text, previous, rawValue(text, current) ?? "", current);
    write(path, withVariable(kept, current, raw, current));
    return { secret, secretPath };
  }
  // In this order, a service that starts at any moment finds the old secret.
  write(previousPath, `${old}\n`, secretPath);
  write(path, withVariable(text, `${previous}_FILE`, previousPath, `${current}_FILE`));
  write(secretPath, `${secret}\n`);
  return { secret, secretPath };
}

function unwritable(path: string): CommandError {
  return new CommandError(
    `The new secret contains an apostrophe or a line end, which cannot be written to ${path}. Generate another one at the git host, and pass it to --stdin. Nothing was changed.`,
  );
}

/**
 * Removes the previous secret from the `.env` file at `path`, and the file that it is in, if it has one.
 *
 * @throws CommandError if there is none
 */
function dropPreviousSecret(path: string): void {
  const text = readText(path);
  if (!hasPrevious(text))
    throw new CommandError(`${path} has no previous secret, so there is nothing to drop.`);
  const { previousPath } = locateSecrets(text, path);
  const isInFile = rawValue(text, `${previous}_FILE`) !== null;
  write(path, withoutVariable(withoutVariable(text, previous), `${previous}_FILE`));
  if (isInFile) rmSync(previousPath, { force: true });
}

function hasPrevious(text: string): boolean {
  const env = parseEnv(text);
  return Boolean(env[previous] || env[`${previous}_FILE`]);
}

interface SecretLocations {
  /** "" if there is none yet */
  readonly old: string;
  readonly isInFile: boolean;
  readonly secretPath: string;
  readonly previousPath: string;
}

function locateSecrets(text: string, path: string): SecretLocations {
  const env = parseEnv(text);
  const secretPath = env[`${current}_FILE`];
  if (!secretPath) {
    const old = env[current];
    if (old === undefined) {
      throw new CommandError(
        `${path} does not set ${current}. Name the file that the service reads, such as: --env-file /etc/hotpush.env`,
      );
    }
    return {
      old: secretFault(current, old) ? "" : old,
      isInFile: false,
      secretPath: path,
      previousPath: path,
    };
  }
  // Who can write this file chooses the one that is replaced.
  refuseForeign(path);
  const previousPath = env[`${previous}_FILE`] || `${secretPath}.previous`;
  return { old: readText(secretPath).replace(/\r?\n$/, ""), isInFile: true, secretPath, previousPath };
}

/** The owner of `directory` could put a link in the place of a file: root would write somewhere else. */
function refuseForeign(directory: string): void {
  const owner = ownUid() === 0 ? (statOf(directory)?.uid ?? 0) : 0;
  if (owner !== 0)
    throw new CommandError(`${directory} belongs to the user ${owner}. Run this as that user, not as root.`);
}

function readText(path: string): string {
  refuseForeign(dirname(path));
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CommandError(
      `${path} cannot be read (${code}). Name the file that the service reads, such as: --env-file /etc/hotpush.env`,
    );
  }
}

/** @param like a new file gets its mode and owner, so the same users can read it */
function write(path: string, text: string, like: string = path): void {
  refuseForeign(dirname(path));
  try {
    rewriteFile(path, text, like);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CommandError(
      `${path} cannot be replaced (${code}). Run this as a user who may write in its directory, such as root.`,
    );
  }
}
