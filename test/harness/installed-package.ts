import { type ChildProcess, execFileSync, type SpawnSyncReturns, spawn, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { testSecret } from "./delivery.ts";
import { LogReader } from "./log-reader.ts";
import { noServer } from "./no-server.ts";
import { npm, ownEnv, type Packed, pack } from "./package.ts";
import { type Scope, temporaryDirectory } from "./temporary.ts";

/** Packs the package into `place` and installs it in a new folder `app`. @returns the packed files */
export function installPackage(place: string, app: string): Packed {
  const packed = pack(place);
  mkdirSync(app);
  writeFileSync(join(app, "package.json"), "{}");
  npm(app, "install", "--prefer-offline", "--no-audit", "--no-fund", join(place, packed.filename));
  return packed;
}

/** Runs a program to its end, in a directory, with the variables of the tests and `env`. */
export function runIn(
  directory: string,
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): SpawnSyncReturns<string> {
  return spawnSync(program, args, {
    cwd: directory,
    env: { ...ownEnv, ...noServer, ...env },
    encoding: "utf8",
  });
}

/** A service started by the launcher of an installed package. */
export interface InstalledService {
  readonly child: ChildProcess;
  readonly log: LogReader;
  readonly url: string;
}

/** Starts the service for `repoPath` with the launcher that is in `bin`. @returns it once it listens */
export async function startInstalled(scope: Scope, bin: string, repoPath: string): Promise<InstalledService> {
  const child = spawn(join(bin, "hotpush"), {
    cwd: repoPath,
    env: {
      PATH: process.env.PATH,
      HOME: repoPath,
      WEBHOOK_SECRET: testSecret,
      WEBHOOK_PORT: "0",
      WEBHOOK_HOST: "127.0.0.1",
      CATCH_UP_INTERVAL: "0",
      REPO_PATH: repoPath,
      STATE_PATH: join(temporaryDirectory(scope), "state"),
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  scope.after(() => child.kill("SIGKILL"));
  const log = new LogReader(child);
  const { port } = await log.waitFor(({ event }) => event === "service.started");
  return { child, log, url: `http://127.0.0.1:${port}` };
}

/** Makes a directory a repository with a remote, and commits its files. @returns the commit */
export function makeCommit(directory: string): string {
  const git = (...args: readonly string[]) =>
    execFileSync("git", ["-c", "user.name=octo", "-c", "user.email=octo@example.org", ...args], {
      cwd: directory,
      encoding: "utf8",
    }).trim();
  git("init", "--quiet", "--initial-branch=main");
  git("add", ".");
  git("commit", "--quiet", "--message=first");
  git("remote", "add", "origin", "https://github.com/octo/app.git");
  return git("rev-parse", "HEAD");
}
