import { existsSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { serverComposeProject } from "#config/server";
import { type ComposeModel, isWrittenByInit } from "#platform/compose";
import { CommandError } from "#problems";
import { listAllContainers } from "./machine.ts";
import type { SetupProject } from "./project.ts";
import { asName, real } from "./server.ts";

/**
 * Chooses a name for the compose project of a checkout if another checkout has containers under its name: directories with the same
 * name are one project to compose, and `up` in one replaces the containers of the other.
 *
 * @param preferred the project's name on the server
 * @returns null: it keeps the name that it has
 * @throws CommandError if a person chose that name, or this checkout has containers under it too
 */
export async function chooseComposeName(
  { root, env: dotenv }: Pick<SetupProject, "root" | "env">,
  { name, services }: ComposeModel,
  preferred: string,
  env: NodeJS.ProcessEnv,
): Promise<string | null> {
  const containers = await listAllContainers(env);
  const own = containers.filter((one) => one.project === name && real(one.directory) === real(root));
  const others = containers.filter(
    ({ directory }) => real(directory) !== real(root) && existsSync(directory),
  );
  const isInUse = ({ isRunning, service }: (typeof others)[0]) =>
    isRunning || Object.hasOwn(services, service);
  const other = others.find((one) => one.project === name && isInUse(one));
  if (other === undefined) return null;
  const taken = [serverComposeProject, ...others.map(({ project }) => project)];
  const names = [preferred, asName(root.split("/").slice(-2).join("-")), `${preferred}-${taken.length}`];
  const free = names.find((one) => !taken.includes(one));
  if (free && own.length === 0 && !dotenv.COMPOSE_PROJECT_NAME) return free;
  const remove = own.length === 0 ? "" : `, docker rm --force ${own.map((one) => one.name).join(" ")}`;
  throw new CommandError(
    `Docker Compose calls this project ${name}, like the one in ${other.directory}, so each replaces the containers of the other. Give this one a name of its own: COMPOSE_PROJECT_NAME=${free ?? "<name>"} in .env${remove}, and run this again. Its volumes under the old name (docker volume ls --filter label=com.docker.compose.project=${name}) stay, and are not used under the new one. If ${other.directory} is out of use, this one can take the service over with its data instead: docker compose up --detach --no-deps --force-recreate ${other.service}`,
  );
}

/**
 * Compares the project with what a person has started in its checkout: with `-p`, `-f`, `--env-file`, or `--profile`, that may be another
 * one, and a deployment would start a second copy with empty volumes, or the services of development.
 *
 * @returns what a person should know of it
 * @throws CommandError unless `.env` says which one is meant
 */
export async function compareStarted(
  { root, env: dotenv, composeFiles }: Pick<SetupProject, "root" | "env" | "composeFiles">,
  { name, services }: ComposeModel,
  env: NodeJS.ProcessEnv,
): Promise<readonly string[]> {
  const containers = await listAllContainers(env);
  const here = containers.filter((one) => one.isRunning && real(one.directory) === real(root));
  const known = here.filter(({ service }) => Object.hasOwn(services, service));
  const own = known.filter(({ project }) => project === name);
  const [other] = own.length === 0 && !dotenv.COMPOSE_PROJECT_NAME ? known : [];
  if (other !== undefined)
    throw new CommandError(
      `${other.name} was started in ${root} as the compose project ${other.project}, and compose calls it ${name} here, which would be a second copy with volumes of its own. If pushes are to replace ${other.name}, write COMPOSE_PROJECT_NAME=${other.project} into .env; else stop it: docker compose -p ${other.project} down. Then run this again.`,
    );
  const isTheirs = (file: string) => existsSync(file) && !isWrittenByInit(file);
  const started = own[0]?.composeFiles.filter(isTheirs) ?? [];
  const unused = started.find((file) => !composeFiles.some((one) => real(one) === real(file)));
  if (unused !== undefined && !dotenv.COMPOSE_FILE)
    throw new CommandError(
      `${own[0]?.name} was started from ${basename(unused)}, which compose does not read by itself: a deployment would replace it by what ${composeFiles.map((file) => basename(file)).join(" and ")} says. Write COMPOSE_FILE=${started.map((file) => relative(root, file)).join(":")} into .env; or start it without -f: docker compose up -d. Then run this again.`,
    );
  const envFile = own[0]?.envFiles.find(
    (file) => existsSync(file) && real(file) !== real(join(root, ".env")),
  );
  if (envFile !== undefined)
    throw new CommandError(
      `${own[0]?.name} was started with --env-file ${relative(root, envFile)}, which a deployment does not read. Put its lines into .env, start it without: docker compose up -d. Then run this again.`,
    );
  const left = here.filter(({ project, service }) => project === name && !Object.hasOwn(services, service));
  return left.map(
    (one) =>
      `${one.name} runs, but no push updates it: ${one.service} is not in the compose file, or in a profile that is not active. To activate that: COMPOSE_PROFILES=<profile> in .env.`,
  );
}
