import { existsSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import type { StatusJson, WholeStatusJson } from "#calls/shapes";
import { secretFault } from "#config/secret";
import { asWritten, parseEnvFile, rawValue, withoutVariable, withVariable } from "#platform/env-file";
import { rewriteFile } from "#platform/files";
import { controllerOf } from "#platform/foreign-files";
import { CommandError } from "#problems";
import { newSecret } from "./project.ts";
import { chooseAnyProject } from "./server.ts";

const current = "WEBHOOK_SECRET";
const previous = "WEBHOOK_SECRET_PREVIOUS";

/** Whose secret it is, or in which file. */
export interface SecretOptions {
  readonly envFile?: string;
  readonly project?: string;
}

/**
 * Replaces the secret, and keeps the old one as the previous secret. All other lines stay as they are.
 *
 * @param readGiven reads the secret that the git host made; null: a new one is made
 * @returns what a person is told, with the new secret on a terminal only
 * @throws CommandError if the file or the new secret cannot be used; then nothing is changed
 */
export function rotateSecret(
  options: SecretOptions,
  env: NodeJS.ProcessEnv,
  readGiven: (() => string) | null,
): readonly string[] {
  const { path, isReadAgain, option } = chooseFile(options, env);
  const text = readSettings(path);
  const { [current]: old = "", [previous]: unfinished, HOTPUSH_GIT_HOST: host } = parseEnvFile(text);
  if (unfinished)
    throw new CommandError(
      `${path} has a previous secret already, so an earlier rotation is not finished. Finish it with: hotpush secret drop-previous`,
    );
  // What was set up by hand names no host.
  const isGitLab = host === "gitlab" || old.startsWith("whsec_");
  const secret = readGiven === null ? newSecret(isGitLab) : readGiven();
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
  return [
    `The new secret is in ${path}. The old one is still accepted,`,
    "as the previous one, so that no push is refused meanwhile.",
    "",
    isReadAgain
      ? "The service reads both within 5 seconds."
      : "First restart the service, so that it reads both:",
    ...(isReadAgain ? [] : ["  docker compose up -d hotpush, or systemctl restart hotpush (docs/swarm.md)"]),
    ...(readGiven === null
      ? ["Then set the Secret (GitLab: Signing token) of the git host's webhook to:", `  ${shown}`]
      : []),
    "Then push. When hotpush status says that the previous one is safe to drop:",
    `  hotpush secret drop-previous${option}`,
  ];
}

/**
 * Removes the previous secret.
 *
 * @param askStatus what the service says of the project, or null if it cannot be asked. null: it is removed without a question
 * @returns what a person is told
 * @throws CommandError if it should be kept, or is not there
 */
export async function dropPrevious(
  options: SecretOptions,
  env: NodeJS.ProcessEnv,
  askStatus: ((project?: string) => Promise<StatusJson | WholeStatusJson | null>) | null,
): Promise<string> {
  const { path, project, isReadAgain, option } = chooseFile(options, env);
  const reason = askStatus === null ? null : whyKeep(await askStatus(project));
  if (reason !== null)
    throw new CommandError(`${reason} To drop it anyway: hotpush secret drop-previous --force${option}`);
  const text = readSettings(path);
  if (!parseEnvFile(text)[previous])
    throw new CommandError(`${path} has no previous secret, so there is nothing to drop.`);
  rewriteFile(path, withoutVariable(text, previous), path);
  const then = isReadAgain
    ? "The service no longer accepts it within 5 seconds."
    : "Restart the service, so that it no longer accepts it.";
  return `The previous secret is removed from ${path}. ${then}`;
}

/** Why the previous secret of a project should be kept, by what the service knows; null if it can be dropped. */
function whyKeep(status: StatusJson | WholeStatusJson | null): string | null {
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
  const { project: found } = chooseAnyProject(env, ".", project);
  const option = project === undefined ? "" : ` --project ${project}`;
  if (found !== null) return { path: found.file, project: found.name, isReadAgain: true, option };
  return { path: ".env", project, isReadAgain: false, option: "" };
}

/** @throws CommandError if the file does not have the secret itself */
function readSettings(path: string): string {
  // They could put a link in the place of the file: root would write somewhere else.
  const other = controllerOf(dirname(path));
  if (other !== null)
    throw new CommandError(
      `${path} is the user ${other.uid}'s to change. Run this as that user, not as root.`,
    );
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  if (parseEnvFile(text)[current] !== undefined) return text;
  throw new CommandError(
    `${path} does not set ${current}. Name the file that the service reads, such as: --env-file /etc/hotpush.env. A secret in ${current}_FILE is yours to replace: keep the old one in a file, and name that in ${previous}_FILE.`,
  );
}
