import type { NotRunningError } from "#calls/client";
import { serverCommands, serverComposeProject, serverServices } from "#config/server";
import { outputOf, runInPlace } from "#platform/run-command";
import { findServer, type Server } from "#setup/server";
import { refuse } from "./command.ts";

/**
 * Runs a command again in the container of `run`, if that is the service that it could not reach and this user may use
 * Docker: only root may use the socket of `run`. If there is no such way, the reason is printed on standard error.
 *
 * @returns the exit code of the command
 */
export async function runInServer(
  error: NotRunningError,
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const server = findServer(env);
  if (server?.state.run !== error.statePath) return refuse(error.message);
  if (!error.isForbidden) return refuse(notRunning(error, server));
  const container = await findRunContainer(env);
  if (container === null) return refuse(forbidden(argv));
  return (await runInPlace(["docker", ...execArguments(container, env), "hotpush", ...argv], env)) ?? 1;
}

/** @returns null if it does not run, or this user may not use Docker */
async function findRunContainer(env: NodeJS.ProcessEnv): Promise<RunContainer | null> {
  const filters = [`project=${serverComposeProject}`, `service=${serverServices.run}`].flatMap((label) => [
    "--filter",
    `label=com.docker.compose.${label}`,
  ]);
  const id = await outputOf(["docker", "ps", "--quiet", "--no-trunc", ...filters], { env });
  if (!id || id.includes("\n")) return null;
  const format = "{{range .Mounts}}{{if eq .Source .Destination}}{{println .Source}}{{end}}{{end}}";
  const mounts = await outputOf(["docker", "inspect", "--format", format, id], { env });
  return { id, directories: mounts?.split("\n").filter(Boolean) ?? [] };
}

interface RunContainer {
  readonly id: string;
  /** The directories that it has at their own paths. */
  readonly directories: readonly string[];
}

/** Variables that decide how the command prints, and in whose name it asks. */
const passedOn = ["TERM", "COLORTERM", "NO_COLOR", "USER", "SUDO_USER"];

function execArguments({ id, directories }: RunContainer, env: NodeJS.ProcessEnv): readonly string[] {
  const isTerminal = [process.stdin, process.stdout, process.stderr].every(({ isTTY }) => isTTY);
  const here = process.cwd();
  const isThere = directories.some((path) => `${here}/`.startsWith(`${path}/`));
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const set = passedOn.flatMap((name) => (env[name] ? [`${name}=${env[name]}`] : []));
  return [
    "exec",
    ...(isTerminal ? ["--interactive", "--tty"] : []),
    ...["--workdir", isThere ? here : "/"],
    ...[...set, `TZ=${timeZone}`].flatMap((variable) => ["--env", variable]),
    id,
  ];
}

function notRunning({ message }: NotRunningError, { files }: Server): string {
  const reason = message.replace(/\. .*$/s, "");
  return `${reason}. Start it: ${serverCommands(files).start}`;
}

function forbidden(argv: readonly string[]): string {
  const command = ["hotpush", ...argv].join(" ");
  return `Only root may use the Hotpush of this server. Run: sudo ${command}. Or, as a user who may use Docker: docker exec -it ${serverComposeProject}-${serverServices.run}-1 ${command}`;
}
