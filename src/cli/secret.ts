import { existsSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { parseEnv } from "node:util";
import { Argument, type Command } from "commander";
import { secretFault } from "#config/secret";
import { asWritten, rawValue, withoutVariable, withVariable } from "#platform/env-file";
import { ownUid, rewriteFile, statOf } from "#platform/files";
import { CommandError } from "#problems";
import { newSecret } from "#setup/project";
import { chooseProject, findServer } from "#setup/server";
import { type CommandContext, newCommand, print, projectOption, refuse } from "./command.ts";
import { accessService } from "./service-access.ts";

export const commands = { secret: makeSecretCommand };

const current = "WEBHOOK_SECRET";
const previous = "WEBHOOK_SECRET_PREVIOUS";

interface SecretOptions {
  readonly envFile?: string;
  readonly project?: string;
  readonly stdin?: boolean;
  readonly force?: boolean;
}

/** `hotpush secret`: rotates the secret of the webhook in two steps, between which both secrets are accepted. */
function makeSecretCommand({ env, finish }: CommandContext): Command {
  const description =
    "Rotate the secret of the webhook without losing a push, in the file of the project or in the .env file of the service. rotate makes a new one of 32 bytes, keeps the old one as WEBHOOK_SECRET_PREVIOUS, and prints what to do next; the new secret is shown on a terminal only. drop-previous removes the old one, if that is safe: see hotpush status.";
  return newCommand("secret", description, [
    "hotpush secret rotate          make a new one; the old one stays valid",
    "hotpush secret drop-previous   the old one is no longer accepted",
  ])
    .addArgument(new Argument("<step>", "first one, then the other").choices(["rotate", "drop-previous"]))
    .option("--stdin", "rotate: the git host made the new one (GitLab, Pagure): read it from standard input")
    .option("--force", "drop-previous: do not ask whether it is safe")
    .option(
      "--env-file <path>",
      "the file that the service reads (default: that of the project, else .env here)",
    )
    .addOption(projectOption("the project whose secret it is, if there are several"))
    .action(async (step: string, options: SecretOptions) =>
      finish(step === "rotate" ? rotateSecret(options, env) : await dropPrevious(options, env)),
    );
}

/** Replaces the secret, and keeps the old one as the previous secret. All other lines stay as they are. */
function rotateSecret(options: SecretOptions, env: NodeJS.ProcessEnv): number {
  const { path, isReadAgain, option } = chooseFile(options, env);
  const text = readSettings(path);
  const { [current]: old = "", [previous]: unfinished, HOTPUSH_GIT_HOST: host } = parseEnv(text);
  if (unfinished)
    throw new CommandError(
      `${path} has a previous secret already, so an earlier rotation is not finished. Finish it with: hotpush secret drop-previous`,
    );
  // What was set up by hand names no host.
  const isGitLab = host === "gitlab" || old.startsWith("whsec_");
  const secret = options.stdin ? readFileSync(0, "utf8").trim() : newSecret(isGitLab);
  const raw = asWritten(secret);
  const fault = secretFault(current, secret);
  if (fault) throw new CommandError(fault);
  if (raw === null || secret === old)
    throw new CommandError(
      "The new secret has an apostrophe or a line end, or is the old one. Make another one at the git host. Nothing was changed.",
    );
  // A placeholder is not kept.
  const isKept = secretFault(current, old) === null;
  const kept = isKept ? withVariable(text, previous, rawValue(text, current) ?? "") : text;
  rewriteFile(path, withVariable(kept, current, raw), path);
  const shown = process.stdout.isTTY ? secret : `what is in ${path} now`;
  print(
    `The new secret is in ${path}. The old one is still accepted,`,
    "as the previous one, so that no push is refused meanwhile.",
    "",
    isReadAgain
      ? "The service reads both within 5 seconds."
      : "First restart the service, so that it reads both:",
    ...(isReadAgain ? [] : ["  docker compose up -d hotpush, or systemctl restart hotpush (docs/swarm.md)"]),
    ...(options.stdin
      ? []
      : ["Then set the Secret (GitLab: Signing token) of the git host's webhook to:", `  ${shown}`]),
    "Then push. When hotpush status says that the previous one is safe to drop:",
    `  hotpush secret drop-previous${option}`,
  );
  return 0;
}

async function dropPrevious(options: SecretOptions, env: NodeJS.ProcessEnv): Promise<number> {
  const { path, project, isReadAgain, option } = chooseFile(options, env);
  const reason = options.force ? null : await whyKeep(env, project);
  if (reason !== null)
    return refuse(`${reason} To drop it anyway: hotpush secret drop-previous --force${option}`);
  const text = readSettings(path);
  if (!parseEnv(text)[previous])
    throw new CommandError(`${path} has no previous secret, so there is nothing to drop.`);
  rewriteFile(path, withoutVariable(text, previous), path);
  const then = isReadAgain
    ? "The service no longer accepts it within 5 seconds."
    : "Restart the service, so that it no longer accepts it.";
  print(`The previous secret is removed from ${path}. ${then}`);
  return 0;
}

/**
 * Why the previous secret of a project should be kept, by what the service knows; null if it can be dropped. The working
 * directory does not say which project: the file of another one may be changed.
 */
async function whyKeep(env: NodeJS.ProcessEnv, project: string | undefined): Promise<string | null> {
  const { call } = accessService(env, { project, directory: null });
  const status = await call("status", {}).catch(() => null);
  if (status === null || !("secrets" in status))
    return "the service cannot be asked whether it is safe. If it has several projects, add --project <name>.";
  const { previous, canDropPrevious, advice } = status.secrets;
  if (previous === null)
    return "the service runs without a previous secret: restart it, if you have just rotated.";
  return canDropPrevious ? null : advice;
}

/**
 * The file with the secret that a command changes; the project, as far as it is known; whether the service notices a change by
 * itself, because it is the file of a project; and the option with which the next command finds it too.
 */
function chooseFile({ envFile, project }: SecretOptions, env: NodeJS.ProcessEnv) {
  if (envFile !== undefined)
    return { path: envFile, project, isReadAgain: false, option: ` --env-file ${envFile}` };
  const server = findServer(env);
  const found = server && chooseProject(server, ".", project);
  const option = project === undefined ? "" : ` --project ${project}`;
  if (found !== null) return { path: found.file, project: found.name, isReadAgain: true, option };
  return { path: ".env", project, isReadAgain: false, option: "" };
}

/** @throws CommandError if the file does not have the secret itself */
function readSettings(path: string): string {
  refuseForeign(dirname(path));
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  if (parseEnv(text)[current] !== undefined) return text;
  throw new CommandError(
    `${path} does not set ${current}. Name the file that the service reads, such as: --env-file /etc/hotpush.env. A secret in ${current}_FILE is yours to replace: keep the old one in a file, and name that in ${previous}_FILE.`,
  );
}

/** The owner of `directory` could put a link in the place of a file: root would write somewhere else. */
function refuseForeign(directory: string): void {
  const owner = ownUid() === 0 ? (statOf(directory)?.uid ?? 0) : 0;
  if (owner !== 0)
    throw new CommandError(`${directory} belongs to the user ${owner}. Run this as that user, not as root.`);
}
