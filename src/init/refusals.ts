import { existsSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { variables } from "../config.ts";
import { rawValue } from "../platform/env-file.ts";
import { notPassedOn } from "./compose-file.ts";
import type { Services } from "./compose-services.ts";
import { ownComposeFile, type Project } from "./project.ts";
import { SetupError } from "./setup-error.ts";

/**
 * Refuses a `.env` that Hotpush would read otherwise than its owner meant it.
 *
 * @throws SetupError with what to change
 */
export function refuseMisread(project: Project): void {
  refuseForeignSettings(project);
  refuseAmbiguousSecret(project);
  refuseOtherDirectory(project);
  refuseSecretFile(project);
}

/**
 * Refuses a project that has a Hotpush already: two of them would fight over every push.
 *
 * @throws SetupError with what to change
 */
export function refuseUnfit({ root }: Project, services: Services): void {
  if (!Object.hasOwn(services, "hotpush")) return;
  throw new SetupError(
    `Your compose file has a service called hotpush, so this project is set up by hand. To have it done for you, take that service out (and ${existsSync(join(root, ownComposeFile)) ? `${ownComposeFile} out of COMPOSE_FILE, if it is there` : "its proxy, if it has one"}), and run this again; to see whether all is right as it is: hotpush doctor`,
  );
}

/** LOG_LEVEL=INFO may be the app's: the service would not start with it. */
function refuseForeignSettings({ env }: Project): void {
  for (const [name, { read, expected }] of Object.entries(variables)) {
    const text = env[name]?.trim();
    if (!text || notPassedOn.includes(name) || read(text) !== null) continue;
    throw new SetupError(
      `${name} in .env is not what Hotpush's setting of that name may be: expected ${expected}. If it is your app's, give it another name there, such as APP_${name}, and run this again.`,
    );
  }
}

/** Compose replaces what comes after a $, Node takes a # for the beginning of a comment, and so on. */
function refuseAmbiguousSecret({ root, env, composeFiles }: Project): void {
  if (!env.WEBHOOK_SECRET) return;
  const raw = rawValue(readFileSync(join(root, ".env"), "utf8"), "WEBHOOK_SECRET") ?? "";
  const value = raw.replace(/\s#.*$/, "");
  const isQuoted = value.startsWith('"');
  const isReplaced = composeFiles.length > 0 && value.includes("$");
  if (value.startsWith("'") || !(isReplaced || value.includes("\\") || (!isQuoted && value.includes("#"))))
    return;
  throw new SetupError(
    "WEBHOOK_SECRET in .env has a $, a # or a \\ in it, which compose and Hotpush read differently. Put it in single quotes, as WEBHOOK_SECRET='…'; or take the line out, and a new secret is made.",
  );
}

/** Compose takes the directory of the first file for the project's: its name, and what relative paths mean. */
function refuseOtherDirectory({ root, env, composeFiles: [first] }: Project): void {
  if (!env.COMPOSE_FILE || first === undefined || real(dirname(first)) === real(root)) return;
  const file = relative(root, first);
  throw new SetupError(
    `COMPOSE_FILE in .env names ${file} first, and compose takes that file's directory for the project's; Hotpush deploys the checkout's own. Name a file of the checkout's root first, such as a compose.yaml with \`include: [${file}]\` and \`name:\` with the name that the project has now (docker compose ls), and run this again.`,
  );
}

/** Git gives the checkout's path without links. */
function real(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}

/** The container has the repository and nothing else of the machine: it would not find the file. */
function refuseSecretFile({ env, composeFiles }: Project): void {
  if (!env.WEBHOOK_SECRET_FILE || composeFiles.length === 0) return;
  throw new SetupError(
    "WEBHOOK_SECRET_FILE in .env names a file of this machine, which Hotpush's container would not have. Take that line out (init makes a new secret in .env, which nobody else may read), or write what is in the file behind WEBHOOK_SECRET=, and run this again.",
  );
}
