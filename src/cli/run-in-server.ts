import type { NotRunningError } from "#calls/client";
import { serverCommands } from "#config/server";
import { outputOf, runInPlace } from "#platform/run-command";
import { runContainer as container, findServer } from "#setup/server";
import { refuse } from "./command.ts";
import { directoriesAround } from "./service-access.ts";

/** Variables that decide how the command prints, and in whose name it asks. */
const passedOn = ["TERM", "COLORTERM", "NO_COLOR", "USER", "SUDO_USER"];

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
  if (!error.isForbidden)
    return refuse(`${error.message.replace(/\. .*$/s, "")}. Start it: ${serverCommands(server.files).start}`);
  const isRunning = await outputOf(["docker", "inspect", "--format", "{{.State.Running}}", container], {
    env,
  });
  const command = ["hotpush", ...argv];
  if (isRunning !== "true") {
    const line = command.join(" ");
    return refuse(
      `Only root may use the Hotpush of this server. Run: sudo ${line}. Or, as a user who may use Docker: docker exec -it ${container} ${line}`,
    );
  }
  const isTerminal = [process.stdin, process.stdout, process.stderr].every(({ isTTY }) => isTTY);
  const set = passedOn.flatMap((name) => (env[name] ? [`${name}=${env[name]}`] : []));
  // A path of this machine leads elsewhere in the container.
  const here = `HOTPUSH_WITHIN=${directoriesAround(".")}`;
  const zone = `TZ=${Intl.DateTimeFormat().resolvedOptions().timeZone}`;
  const options = [...set, zone, here].flatMap((variable) => ["--env", variable]);
  const terminal = isTerminal ? ["--interactive", "--tty"] : [];
  return (await runInPlace(["docker", "exec", ...terminal, ...options, container, ...command], env)) ?? 1;
}
