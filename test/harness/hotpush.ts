import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { operatorSocketPath } from "../../src/config/state-path.ts";
import { noServer } from "./no-server.ts";
import { type RunningService, type ServiceOptions, startService } from "./service.ts";
import type { Scope } from "./temporary.ts";
import { until } from "./until.ts";

/** The launcher that a person calls. */
export const launcher = fileURLToPath(new URL("../../bin/hotpush", import.meta.url));

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export type Target = Pick<RunningService, "statePath"> &
  Partial<Pick<RunningService, "child">> & {
    readonly env?: NodeJS.ProcessEnv;
    readonly cwd?: string;
  };

/** Runs a command of `hotpush` against the service of `target`, without a terminal. */
export async function hotpush(target: Target, ...args: readonly string[]): Promise<CommandResult> {
  await untilAnswering(target);
  return await new Promise((resolve) => {
    const options = { env: commandEnvironment(target), cwd: target.cwd ?? "/", maxBuffer: 64 * 1024 ** 2 };
    execFile(launcher, args, options, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? -1) : 0, stdout, stderr }),
    );
  });
}

/** Runs a command that prints JSON. @returns the parsed output @throws Error if the exit code is not 0 */
export async function hotpushJson<Answer>(target: Target, ...args: readonly string[]): Promise<Answer> {
  const { code, stdout, stderr } = await hotpush(target, ...args, "--json");
  if (code !== 0) throw new Error(`hotpush ${args.join(" ")} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout) as Answer;
}

/** Starts a service, and waits until it runs deployments and answers commands. */
export async function startAnswering(scope: Scope, options: ServiceOptions = {}): Promise<RunningService> {
  const service = await startService(scope, options);
  await untilAnswering(service);
  return service;
}

/** A service logs its start when it accepts pushes, a moment before it has the lock to run them. */
export async function untilAnswering({ child, statePath }: Target): Promise<void> {
  if (child?.exitCode === null && child.signalCode === null) {
    await until("the control socket", () => existsSync(operatorSocketPath(statePath)));
  }
}

export interface RunningCommand {
  readonly child: ChildProcess;
  /** The lines of its output so far. */
  readonly lines: readonly string[];
  readonly errors: readonly string[];
  readonly waitForLine: (pattern: RegExp) => Promise<string>;
  readonly ended: Promise<number | null>;
}

/** Starts a command and leaves it running. */
export async function startCommand(
  scope: Scope,
  target: Target,
  ...args: readonly string[]
): Promise<RunningCommand> {
  await untilAnswering(target);
  const child = spawn(launcher, args, { env: commandEnvironment(target), cwd: target.cwd ?? "/" });
  const [lines, errors]: [string[], string[]] = [[], []];
  createInterface(child.stdout).on("line", (line) => lines.push(line));
  createInterface(child.stderr).on("line", (line) => errors.push(line));
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  scope.after(() => child.kill("SIGKILL"));
  return {
    child,
    lines,
    errors,
    ended,
    waitForLine: (pattern) => until(`a line like ${pattern}`, () => lines.find((line) => pattern.test(line))),
  };
}

export function commandEnvironment({ statePath, env }: Target): NodeJS.ProcessEnv {
  const { PATH, DOCKER_HOST } = process.env;
  return { PATH, DOCKER_HOST, HOME: "/", ...noServer, STATE_PATH: statePath, ...env };
}
