import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { type MachineFiles, machineProject, machineServices } from "../config/machine-part.ts";
import { composeProgram } from "../platform/compose/program.ts";
import { type CommandEnding, outputOf, runCommand } from "../platform/run-command.ts";

const startTimeoutMs = 300_000;

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
  /** Of its compose project; "" without one. */
  readonly directory: string;
  readonly service: string;
}

/** The running containers that publish `port`. */
export async function listPublishers(port: number, env: NodeJS.ProcessEnv): Promise<readonly Publisher[]> {
  const label = (name: string) => `{{.Label "com.docker.compose.${name}"}}`;
  const format = ["{{.Names}}", label("project.working_dir"), label("service")].join("\t");
  const lines = await list(["--filter", `publish=${port}`, "--format", format], env);
  return lines.map((line) => {
    const [container = "", directory = "", service = ""] = line.split("\t");
    return { port, container, directory, service };
  });
}

/** Whether these services of the machine part run. */
export async function isMachinePartRunning(
  services: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<boolean> {
  const running = await listContainers(machineProject, '{{.Label "com.docker.compose.service"}}', [], env);
  return services.every((service) => running.includes(service));
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

/** Makes a new container of `run` from the same definition, and waits until it is healthy. */
export function recreateRun(files: MachineFiles, env: NodeJS.ProcessEnv): Promise<CommandEnding> {
  return startMachinePart(files, env, ["--force-recreate", "--no-deps", machineServices.run]);
}

/**
 * Makes the containers of the machine part as its compose file says, starts them and waits until they are
 * healthy. Those that are right already stay as they are.
 *
 * @param services all of them by default; options of `up` may precede them
 */
export async function startMachinePart(
  files: MachineFiles,
  env: NodeJS.ProcessEnv,
  services: readonly string[] = [],
): Promise<CommandEnding> {
  return await upMachinePart(files, ["--detach", "--wait", ...services], env);
}

/** Runs `docker compose up` for the machine part, with `args`. */
export async function upMachinePart(
  { path, composeFile, envFile }: MachineFiles,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<CommandEnding> {
  const project = ["--project-name", machineProject, "--project-directory", path];
  const files = ["--file", composeFile, "--env-file", envFile];
  // A person's shell may have values for the variables of the file, and they would have priority.
  const own = Object.keys(parseEnv(readFileSync(envFile, "utf8"))).map((name) => [name, undefined]);
  return await runCommand({
    argv: [...composeProgram(env), ...project, ...files, "up", ...args],
    cwd: path,
    env: { ...env, ...Object.fromEntries(own) },
    timeoutMs: startTimeoutMs,
  });
}

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
