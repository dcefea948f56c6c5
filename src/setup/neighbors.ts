/** Checkouts whose directories have the same name are one project to compose: `up` in one replaces the containers of the other. */
import { existsSync } from "node:fs";
import { serverComposeProject } from "#config/server";
import type { ComposeModel } from "#platform/compose";
import { connectEngine, filteredBy, getJson } from "#platform/docker/engine";
import { CommandError } from "#problems";
import { listAllContainers, listByFilter } from "./machine.ts";
import type { SetupProject } from "./project.ts";
import { asName, real } from "./server.ts";

/**
 * Chooses a name for the compose project of a checkout if another checkout has containers under the one that compose gives it.
 *
 * @param preferred the project's name on the server
 * @returns null: it keeps the name that it has
 * @throws CommandError if this checkout has containers or volumes under that name too, which it would lose from sight
 */
export async function chooseComposeName(
  { root, env: dotenv }: Pick<SetupProject, "root" | "env">,
  { name, services, volumes }: ComposeModel,
  preferred: string,
  env: NodeJS.ProcessEnv,
): Promise<string | null> {
  const containers = await listAllContainers(env);
  const isOthers = ({ directory }: { readonly directory: string }) =>
    directory !== "" && real(directory) !== real(root) && existsSync(directory);
  const others = containers.filter((one) => one.project === name && isOthers(one));
  const other = others.find(({ isRunning, service }) => isRunning || Object.hasOwn(services, service));
  if (other === undefined && name !== serverComposeProject) return null;
  const own = containers.filter((one) => one.project === name && real(one.directory) === real(root));
  const kept = own.length > 0 ? own.map((one) => one.name) : await findUnusedVolumes(name, volumes, env);
  const isFixed = Boolean(dotenv.COMPOSE_PROJECT_NAME);
  if (kept.length > 0 || isFixed) {
    const names = kept.join(" ");
    const present = kept.length === 0 ? "" : `, and there is ${names}, which may be of this checkout`;
    const remove = own.length === 0 ? "" : `, docker rm --force ${names}`;
    throw new CommandError(
      `Docker Compose calls this project ${name}, like the one in ${other?.directory ?? "the server's files"}${present}. Under one name, each would replace the containers of the other. Give this one its own: COMPOSE_PROJECT_NAME=<name> in .env${remove}, and run this again. Volumes called ${name}_… stay, but under the new name it gets new ones.`,
    );
  }
  const taken = new Set(containers.filter(isOthers).map(({ project }) => project));
  const [base, more] = [preferred, asName(root.split("/").slice(-2).join("-"))];
  const names = [base, more, ...Array.from({ length: 97 }, (_, index) => `${base}-${index + 2}`)];
  return names.find((one) => one !== name && one !== serverComposeProject && !taken.has(one)) ?? null;
}

/** Volumes of the compose file under this name that no container has: they may have data of this checkout. */
async function findUnusedVolumes(
  name: string,
  volumes: ComposeModel["volumes"] = {},
  env: NodeJS.ProcessEnv,
): Promise<readonly string[]> {
  const engine = connectEngine(env.DOCKER_HOST);
  const filter = filteredBy({ label: [`com.docker.compose.project=${name}`] });
  const { Volumes: found } = await getJson<{ readonly Volumes: readonly Volume[] | null }>(
    engine,
    `/volumes?${filter}`,
  );
  const known = (found ?? []).filter(({ Labels }) =>
    Object.hasOwn(volumes, Labels?.["com.docker.compose.volume"] ?? ""),
  );
  const users = await Promise.all(known.map(({ Name }) => listByFilter(engine, { volume: [Name] })));
  return known.filter((_, index) => users[index]?.length === 0).map(({ Name }) => Name);
}

interface Volume {
  readonly Name: string;
  readonly Labels: Readonly<Record<string, string>> | null;
}
