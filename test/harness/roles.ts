import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { testSecret } from "./delivery.ts";
import { LogReader } from "./log-reader.ts";
import { endProcess, mainPath } from "./service.ts";
import { type Scope, temporaryDirectory } from "./temporary.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** A server with several projects, of which nothing runs yet. */
export interface Machine {
  readonly projectsPath: string;
  readonly secretsPath: string;
  readonly spoolPath: string;
  /** The state directory of a role. */
  readonly statePathOf: (role: Role) => string;
  /** Writes the file of a project; `settings` are more lines of it. */
  readonly addProject: (name: string, repoPath: string, settings?: Readonly<Record<string, string>>) => void;
  /** Starts a role and waits until it serves. `wrapper` is a prefix of its command line, `code` another main.ts. */
  readonly start: (
    role: Role,
    env?: Readonly<Record<string, string>>,
    wrapper?: readonly string[],
    code?: string,
  ) => Promise<RunningRole>;
}

export type Role = "all" | "front" | "run";

export interface RunningRole {
  readonly child: ChildProcess;
  readonly log: LogReader;
  /** 0: it has none. */
  readonly port: number;
  readonly urlOf: (project: string) => string;
  readonly statePath: string;
  /** Sends a signal and waits for the end. */
  readonly end: (signal?: NodeJS.Signals) => Promise<number | null>;
}

export function makeMachine(scope: Scope, directory: string = temporaryDirectory(scope)): Machine {
  const [projectsPath, secretsPath] = [join(directory, "projects"), join(directory, "secrets")];
  for (const path of [projectsPath, secretsPath]) mkdirSync(path);
  const statePathOf = (role: Role) => join(directory, role === "front" ? "front" : "state");
  const spoolPath = join(statePathOf("front"), "spool");
  const frontSocket = join(statePathOf("run"), "front.sock");
  return {
    ...{ projectsPath, secretsPath, spoolPath, statePathOf },
    addProject(name, repoPath, settings = {}) {
      const values = { REPO_PATH: repoPath, WEBHOOK_SECRET: testSecret, CATCH_UP_INTERVAL: "0", ...settings };
      const lines = Object.entries(values).map(([key, value]) => `${key}=${value}\n`);
      writeFileSync(join(projectsPath, `${name}.env`), lines.join(""));
    },
    async start(role, env = {}, wrapper = [], code = mainPath) {
      const statePath = statePathOf(role);
      const [program = "", ...before] = [...wrapper, process.execPath];
      const child = spawn(program, [...before, code, ...(role === "all" ? [] : [role])], {
        cwd: directory,
        env: {
          ...{ PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: process.env.TMPDIR },
          DOCKER_HOST: process.env.DOCKER_HOST,
          NODE_COMPILE_CACHE: join(root, "node_modules/.cache/compiled"),
          ...{ WEBHOOK_PORT: "0", WEBHOOK_HOST: "127.0.0.1", STATE_PATH: statePath },
          ...{ PROJECTS_PATH: projectsPath, SECRETS_PATH: secretsPath },
          ...{ SPOOL_PATH: spoolPath, FRONT_SOCKET: frontSocket },
          ...env,
        },
        stdio: ["ignore", "pipe", "pipe"],
      });
      const end = (signal: NodeJS.Signals = "SIGTERM") => endProcess(child, signal);
      scope.after(() => end("SIGKILL"));
      const log = new LogReader(child);
      const started = await log.waitFor(({ event }) => event === "service.started");
      const port = Number(started.port ?? 0);
      const urlOf = (project: string) => `http://127.0.0.1:${port}/webhook/${project}`;
      return { child, log, port, urlOf, statePath, end };
    },
  };
}
