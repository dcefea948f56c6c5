import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { operatorSocketPath } from "../../src/config/server.ts";
import { statePaths, testSecret } from "./delivery.ts";
import { LogReader } from "./processes.ts";
import { type Scope, temporaryDirectory, writeScript } from "./temporary.ts";
import { until } from "./until.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
export const mainPath = join(root, "src/main.ts");

export interface ServiceOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** The text of deploy.sh; null: none is written. */
  readonly script?: string | null;
  readonly statePath?: string;
  readonly repoPath?: string;
  /** A prefix of the command line, such as `strace` and its arguments. */
  readonly wrapper?: readonly string[];
}

/** A real service in a process of its own, with a repository directory and a state directory of its own. */
export interface RunningService {
  readonly url: string;
  readonly port: number;
  readonly child: ChildProcess;
  readonly log: LogReader;
  readonly statePath: string;
  readonly repoPath: string;
  /** Sends a signal and waits for the end; resolves with the exit code, or null if a signal ended it. */
  readonly end: (signal?: NodeJS.Signals) => Promise<number | null>;
  /** Starts another one with the same directories and settings. */
  readonly again: (options?: ServiceOptions) => Promise<RunningService>;
}

export const quickScript = '#!/bin/sh\necho "==> Deploy"\necho "deployed $1 $2"\n';

/** Starts `node src/main.ts` and waits until it listens, runs deployments and answers commands. */
export async function startService(scope: Scope, options: ServiceOptions = {}): Promise<RunningService> {
  const statePath = options.statePath ?? join(temporaryDirectory(scope), "state");
  const repoPath = options.repoPath ?? temporaryDirectory(scope);
  const script =
    options.script === undefined && options.repoPath === undefined ? quickScript : options.script;
  mkdirSync(repoPath, { recursive: true });
  if (script) writeScript(join(repoPath, "deploy.sh"), script);
  const running = await startedBy(spawnService(scope, { ...options, statePath, repoPath }), statePath);
  const url = `http://127.0.0.1:${running.port}`;
  statePaths.set(url, statePath);
  return {
    ...running,
    url,
    statePath,
    repoPath,
    again: (more = {}) => startService(scope, { ...options, script: null, ...more, statePath, repoPath }),
  };
}

/** Waits until a process serves, and answers commands if it is to have a `statePath`. Its port is 0 if it has none. */
export async function startedBy({ child, log }: ReturnType<typeof spawnNode>, statePath: string | null) {
  const started = await log.waitFor(({ event }) => event === "service.started");
  // It accepts pushes a moment before it has the lock to run them.
  const isReady = () => statePath === null || existsSync(operatorSocketPath(statePath)) || hasEnded(child);
  await until("the operator's socket", isReady);
  const end = (signal: NodeJS.Signals = "SIGTERM") => endProcess(child, signal);
  return { child, log, port: Number(started.port ?? 0), end };
}

/** What each service of a test gets. */
export function serviceEnvironment(): NodeJS.ProcessEnv {
  const { PATH, HOME, TMPDIR, DOCKER_HOST } = process.env;
  const NODE_COMPILE_CACHE = join(root, "node_modules/.cache/compiled");
  return {
    PATH,
    HOME,
    TMPDIR,
    DOCKER_HOST,
    NODE_COMPILE_CACHE,
    WEBHOOK_PORT: "0",
    WEBHOOK_HOST: "127.0.0.1",
  };
}

/** Only starts the process, for cases in which it is expected to exit. */
export function spawnService(
  scope: Scope,
  options: ServiceOptions & { statePath: string; repoPath: string },
) {
  const env = {
    ...serviceEnvironment(),
    PAGE_PORT: "0",
    WEBHOOK_SECRET: testSecret,
    REPO_PATH: options.repoPath,
    STATE_PATH: options.statePath,
    CATCH_UP_INTERVAL: "0",
    ...options.env,
  };
  return spawnNode(scope, [mainPath], { env, cwd: options.repoPath, wrapper: options.wrapper });
}

interface SpawnOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly wrapper?: readonly string[] | undefined;
}

/** Starts this Node until the test ends. */
export function spawnNode(scope: Scope, args: readonly string[], { env, cwd, wrapper = [] }: SpawnOptions) {
  const [program = "", ...before] = [...wrapper, process.execPath];
  const child = spawn(program, [...before, ...args], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  scope.after(() => endProcess(child, "SIGKILL"));
  return { child, log: new LogReader(child) };
}

/** Waits until a service has started, or has exited (null). */
export async function startedOrEnded({ child, log }: { child: ChildProcess; log: LogReader }) {
  const started = () => log.lines.find((line) => line.event === "service.started");
  const isOver = () => hasEnded(child) && child.stderr?.readableEnded;
  await until("the service has started or ended", () => started() || isOver());
  return started() ?? null;
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

export async function endProcess(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (hasEnded(child)) return child.exitCode;
  const ended = once(child, "exit");
  child.kill(signal);
  await ended;
  return child.exitCode;
}

/** A deploy.sh that reports its start and runs until `letGo`, then exits with the code in that file. */
export const waitingScript = `#!/bin/sh
echo started
while [ ! -e "$REPO_PATH/go" ] && [ -d "$REPO_PATH" ]; do sleep 0.02; done
exit "$(cat "$REPO_PATH/go")"
`;

/** A deploy.sh that adds its deployment's id to the file `runs`, reports its start and runs until `letGo`. */
export const patientScript = `#!/bin/sh
echo "$DEPLOY_ID" >>runs
echo up
while [ -e deploy.sh ] && [ ! -e go ]; do sleep 0.02; done
`;

/** Makes the waiting script, and all later ones, exit with `exitCode`. The script never sees a file without the code. */
export function letGo(repoPath: string, exitCode = 0): void {
  const path = join(repoPath, "go");
  writeFileSync(`${path}.new`, String(exitCode));
  renameSync(`${path}.new`, path);
}
