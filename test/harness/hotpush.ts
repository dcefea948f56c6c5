import { execFile, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Scope } from "./temporary.ts";
import { until } from "./until.ts";

/** The launcher that a person calls. */
export const launcher = fileURLToPath(new URL("../../bin/hotpush", import.meta.url));

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Target {
  readonly statePath: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
}

/** Runs a command of `hotpush` against the service of `target`, without a terminal. */
export function hotpush(target: Target, ...args: readonly string[]): Promise<CommandResult> {
  return execute(launcher, args, { env: commandEnvironment(target), cwd: target.cwd ?? "/" });
}

export interface CliOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** Runs the command line in `cwd`, which is its HOME. Of the environment of the tests it gets the PATH. */
export function runCli(args: readonly string[], { cwd, env = {} }: CliOptions): Promise<CommandResult> {
  const all = { PATH: process.env.PATH, HOME: cwd, ...noServer, ...env };
  return execute(launcher, args, { cwd, env: all });
}

/** Runs a program to its end. The code is -1 if a signal ended it. */
export function execute(
  program: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const all = { ...options, maxBuffer: 64 * 1024 ** 2 };
    const child = execFile(program, args, all, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? -1) : 0, stdout, stderr }),
    );
    child.stdin?.on("error", () => {}).end();
  });
}

/** Runs a command that prints JSON. @returns the parsed output @throws Error if the exit code is not 0 */
export async function hotpushJson<Answer>(target: Target, ...args: readonly string[]): Promise<Answer> {
  const { code, stdout, stderr } = await hotpush(target, ...args, "--json");
  if (code !== 0) throw new Error(`hotpush ${args.join(" ")} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout) as Answer;
}

/** Starts a command and leaves it running. */
export function startCommand(scope: Scope, target: Target, ...args: readonly string[]) {
  const child = spawn(launcher, args, { env: commandEnvironment(target), cwd: target.cwd ?? "/" });
  const [lines, errors]: [string[], string[]] = [[], []];
  createInterface(child.stdout).on("line", (line) => lines.push(line));
  createInterface(child.stderr).on("line", (line) => errors.push(line));
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  scope.after(() => child.kill("SIGKILL"));
  return {
    child,
    /** The lines of its output so far. */
    lines,
    errors,
    ended,
    waitForLine: (pattern: RegExp) =>
      until(`a line like ${pattern}`, () => lines.find((line) => pattern.test(line))),
  };
}

export function commandEnvironment({ statePath, env }: Target): NodeJS.ProcessEnv {
  const { PATH, DOCKER_HOST } = process.env;
  return { PATH, DOCKER_HOST, HOME: "/", ...noServer, STATE_PATH: statePath, ...env };
}

/** For commands of tests: the server that this machine may have is not theirs. */
export const noServer = { SERVER_PATH: "/hotpush-test/no-server" } as const;

/** A real terminal of 80 columns, with a shell whose prompt is `ready>`. */
export type TestTerminal = ReturnType<typeof openTestTerminal>;

export function openTestTerminal(scope: Scope, env: Readonly<Record<string, string>>) {
  const server = `hotpush-test-${randomBytes(6).toString("hex")}`;
  const tmux = (...args: readonly string[]) =>
    execFileSync("tmux", ["-L", server, "-f", "/dev/null", ...args], { encoding: "utf8", stdio: "pipe" });
  const variables = {
    ...noServer,
    ...env,
    PATH: `${dirname(launcher)}:${env.PATH ?? process.env.PATH}`,
    PS1: "ready> ",
  };
  const settings = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
  const shell = ["env", ...settings, "bash", "--norc", "--noprofile"];
  tmux("new-session", "-d", "-x", "80", "-y", "80", "-s", "test", ...shell);
  scope.after(() => tmux("kill-server"));
  const screen = () => tmux("capture-pane", "-p", "-t", "test").trimEnd().split("\n");
  return {
    type: (line: string) => void tmux("send-keys", "-t", "test", line, "Enter"),
    press: (key: string) => void tmux("send-keys", "-t", "test", key),
    /** The visible lines of the screen. */
    screen,
    /** The same with colour codes, and with wrapped lines joined. */
    raw: () => tmux("capture-pane", "-p", "-e", "-J", "-t", "test"),
    waitFor: (pattern: RegExp) =>
      until(`${pattern} on the screen`, () => {
        const text = screen().join("\n");
        return pattern.test(text) && text;
      }),
  };
}
