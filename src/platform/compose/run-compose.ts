import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { ProblemError } from "../../problems.ts";
import { secretsInVariable } from "../../redaction/detect-secrets.ts";
import { createRedactor, redactedPartsOf } from "../../redaction/redactor.ts";
import { readEnvFiles } from "../../redaction/secret-files.ts";
import { type Argv, type CommandEnding, runCommand } from "../run-command.ts";
import type { ComposeTarget } from "./commands.ts";
import { composeProgram } from "./program.ts";

/** Which project a compose command is about, and what it is run with each time. */
export interface ComposeOptions {
  readonly target: ComposeTarget;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  /** A lock that the command holds too, so that the lock lasts until the command has ended. */
  readonly lockDescriptor: number | undefined;
}

/** What a compose command is run with, beside its arguments. */
export interface ComposeRun {
  readonly timeoutMs: number;
  readonly input?: string;
  /** Where it is run, seen from the project's directory, which it is without. */
  readonly directory?: string;
  readonly onLine?: (line: string) => void;
}

/**
 * Runs `argv` in the project's directory, holding the roll-out's lock. The lines it prints are given out without the
 * project's secrets; `output` is as it was written.
 */
export async function runCompose(
  { env, signal, lockDescriptor, target }: ComposeOptions,
  argv: Argv,
  { timeoutMs, input, directory = ".", onLine }: ComposeRun,
): Promise<CommandEnding> {
  const redact = redactorOf(env, target.projectDirectory);
  const ending = await runCommand({
    argv: withProgram(argv, env),
    cwd: resolve(target.projectDirectory, directory),
    // PWD keeps compose from resolving the link that may stand at this path (locate-project.ts). A file that names the
    // repository by REPO_PATH means its path on the host, whatever it is in here.
    // Attestations hold the time of the build: with them, every build would look like a new version.
    env: {
      BUILDX_NO_DEFAULT_ATTESTATIONS: "1",
      DOCKER_CLI_HINTS: "false",
      COMPOSE_MENU: "false",
      ...env,
      PWD: target.projectDirectory,
      ...(env.REPO_PATH === undefined ? {} : { REPO_PATH: target.projectDirectory }),
    },
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
  return createRedactor(secrets.flatMap(redactedPartsOf)).text;
}

/** The system has the same error for it as for a program that is not there. */
function noDirectory(path: string): ProblemError {
  const detail = `${path} does not exist. Name the directory of the compose file: --directory, or REPO_PATH.`;
  return new ProblemError({ code: "repository_missing", detail });
}

/** Docker's own commands are left as they are. */
function withProgram(argv: Argv, env: NodeJS.ProcessEnv): Argv {
  const [docker, plugin, ...rest] = argv;
  return docker === "docker" && plugin === "compose" ? [...composeProgram(env), ...rest] : argv;
}

/** What `ending` says of a command that should have ended well. */
export function complaintOf(step: string, ending: CommandEnding): string {
  if (ending.kind === "exited") return `docker compose ended with exit code ${ending.code} (${step})`;
  return `docker compose did not end in time (${step}) and was killed`;
}

/** The last lines that a command wrote. */
export function linesOf(ending: CommandEnding): readonly string[] {
  return ending.lastLines;
}

export function hasEndedWell(ending: CommandEnding): boolean {
  return ending.kind === "exited" && ending.code === 0;
}
