import { existsSync } from "node:fs";
import { serverComposeProject } from "#config/server";
import type { ComposeModel } from "#platform/compose";
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
