import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { ProblemError } from "#problems";
import { createRedactor, readEnvFiles, secretsInVariable } from "#redaction";
import { type Argv, type CommandEnding, runCommand } from "../run-command.ts";
import type { SystemUser } from "../users.ts";
import type { ComposeTarget } from "./commands.ts";
import { composeProgram } from "./program.ts";

/** The project of a compose command, and the conditions it runs under. */
export interface ComposeOptions {
  readonly target: ComposeTarget;
  readonly env: NodeJS.ProcessEnv;
  /** The user to run compose as, whose plugins it may be; null or absent: the user of this process. */
  readonly user?: SystemUser | null;
  readonly signal: AbortSignal;
  /** A lock that the command holds too, so that the lock lasts until the command has ended. */
  readonly lockDescriptor: number | undefined;
}

/** What one compose command gets beside its arguments. */
export interface ComposeRun {
  readonly timeoutMs: number;
  readonly input?: string;
  /** The working directory, relative to the project's directory; that directory by default. */
  readonly directory?: string;
  readonly onLine?: (line: string) => void;
}

/**
 * Runs `argv` in the project's directory and lets it hold the lock. Lines are given to `onLine` and in `lastLines`
 * with the project's secrets redacted; `output` is as compose wrote it.
 *
 * @throws ProblemError `compose_missing`, `repository_missing`, or `rollout_interrupted` if `signal` is aborted
 */
export async function runCompose(
  { env, user = null, signal, lockDescriptor, target }: ComposeOptions,
  argv: Argv,
  { timeoutMs, input, directory = ".", onLine }: ComposeRun,
): Promise<CommandEnding> {
  const redact = redactorOf(env, target.projectDirectory);
  const ending = await runCommand({
    argv: withProgram(argv, env),
    cwd: resolve(target.projectDirectory, directory),
    // PWD keeps compose from resolving the link that may stand at this path (locate-project.ts). A file that
    // names the repository by REPO_PATH means its path on the host. Attestations hold the time of the build:
    // with them, every build would look like a new version.
    env: {
      BUILDX_NO_DEFAULT_ATTESTATIONS: "1",
      DOCKER_CLI_HINTS: "false",
      COMPOSE_MENU: "false",
      ...env,
      PWD: target.projectDirectory,
      ...(env.REPO_PATH === undefined ? {} : { REPO_PATH: target.projectDirectory }),
    },
    user,
    ...(input === undefined ? {} : { input }),
    timeoutMs,
    signal,
    heldDescriptor: lockDescriptor,
    onLine: onLine && ((line) => onLine(redact(line))),
  });
  if (ending.kind === "not_found") {
    if (!existsSync(target.projectDirectory)) throw noDirectory(target.projectDirectory);
    throw new ProblemError({
      code: "compose_missing",
      detail: "There is no docker program here. Install docker-cli and docker compose.",
    });
  }
  if (ending.kind === "aborted") {
    throw new ProblemError({ code: "rollout_interrupted", detail: "The roll-out was asked to stop." });
  }
  return { ...ending, lastLines: ending.lastLines.map(redact) };
}

function redactorOf(env: NodeJS.ProcessEnv, directory: string): (text: string) => string {
  const given = Object.entries(env).map(([name, value = ""]) => ({ name, value }));
  const secrets = [...given, ...readEnvFiles(directory)].flatMap(({ name, value }) =>
    secretsInVariable(name, value),
  );
  return createRedactor(secrets).text;
}

/** The system reports it with the same error as a missing program. */
function noDirectory(path: string): ProblemError {
  const detail = `${path} does not exist. Name the directory of the compose file: --directory, or REPO_PATH.`;
  return new ProblemError({ code: "repository_missing", detail });
}

/** Only `docker compose` is replaced; other docker commands stay as they are. */
function withProgram(argv: Argv, env: NodeJS.ProcessEnv): Argv {
  const [docker, plugin, ...rest] = argv;
  return docker === "docker" && plugin === "compose" ? [...composeProgram(env), ...rest] : argv;
}

/** The error for containers of `service` that compose did not start. */
export function startFailure(service: string, step: string, ending: CommandEnding): ProblemError {
  return new ProblemError({
    code: "container_start_failed",
    detail: `${service} was not started: ${complaintOf(step, ending)}.`,
    evidence: ending.lastLines,
  });
}

/** Describes the ending of a command that did not succeed. */
export function complaintOf(step: string, ending: CommandEnding): string {
  if (ending.kind === "exited") return `docker compose ended with exit code ${ending.code} (${step})`;
  return `docker compose did not end in time (${step}) and was killed`;
}
