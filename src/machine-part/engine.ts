import { machineProject, machineServices, projectNetwork } from "../config/machine-part.ts";
import { outputOf, runCommand } from "../platform/run-command.ts";

/** The directories in which containers of the compose project `name` were made. */
export async function listComposeDirectories(
  name: string,
  env: NodeJS.ProcessEnv,
): Promise<readonly string[]> {
  return await listContainers(name, '{{.Label "com.docker.compose.project.working_dir"}}', ["--all"], env);
}

/** A container that has a port of the machine. */
export interface Publisher {
  readonly port: number;
  readonly container: string;
  /** Its compose project and the directory of that; "" without one. */
  readonly project: string;
  readonly directory: string;
  readonly service: string;
}

/** The running containers that publish `port`. */
export async function listPublishers(port: number, env: NodeJS.ProcessEnv): Promise<readonly Publisher[]> {
  const label = (name: string) => `{{.Label "com.docker.compose.${name}"}}`;
  const format = ["{{.Names}}", label("project"), label("project.working_dir"), label("service")].join("\t");
  const lines = await list(["--filter", `publish=${port}`, "--format", format], env);
  return lines.map((line) => {
    const [container = "", project = "", directory = "", service = ""] = line.split("\t");
    return { port, container, project, directory, service };
  });
}

/** A project in its checkout `root`, with the services that Caddy serves. */
export interface ProjectOnMachine {
  readonly name: string;
  readonly root: string;
  readonly published: readonly string[];
}

/** Whether the project runs in containers that Caddy reaches: those of its published services are on its network. */
export async function isProjectUp(
  { name, root, published }: ProjectOnMachine,
  env: NodeJS.ProcessEnv,
): Promise<boolean> {
  const filters = [`network=${projectNetwork(name)}`, `label=com.docker.compose.project.working_dir=${root}`];
  const format = '{{.Label "com.docker.compose.service"}}';
  const [onNetwork = [], all = []] = await Promise.all(
    [filters, filters.slice(1)].map((some) =>
      list([...some.flatMap((filter) => ["--filter", filter]), "--format", format], env),
    ),
  );
  return all.length > 0 && published.every((service) => onNetwork.includes(service));
}

/**
 * Whether `run` knows the user with this id. A container keeps the /etc/passwd that it was started with, because a change of
 * that file is a new file.
 */
export async function isUserKnown(uid: number, env: NodeJS.ProcessEnv): Promise<boolean> {
  const labels = [`project=${machineProject}`, `service=${machineServices.run}`];
  const filters = labels.flatMap((label) => ["--filter", `label=com.docker.compose.${label}`]);
  const [container] = await list([...filters, "--format", "{{.ID}}"], env);
  if (container === undefined) return true;
  const argv = ["docker", "exec", container, "getent", "passwd", String(uid)] as const;
  const ending = await runCommand({ argv, env, timeoutMs: getentTimeoutMs });
  return !(ending.kind === "exited" && ending.code === getentNotFound);
}

const getentTimeoutMs = 10_000;
/** As getent(1) has it. */
const getentNotFound = 2;

async function listContainers(
  project: string,
  format: string,
  options: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<readonly string[]> {
  const filter = `label=com.docker.compose.project=${project}`;
  return [...new Set(await list([...options, "--filter", filter, "--format", format], env))];
}

/** @returns a line for each container; none if the engine does not answer */
async function list(options: readonly string[], env: NodeJS.ProcessEnv): Promise<readonly string[]> {
  const output = await outputOf(["docker", "ps", ...options], { env });
  return output?.split("\n").filter(Boolean) ?? [];
}
