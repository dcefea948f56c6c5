import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync, type Stats } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ownUid } from "../platform/files.ts";
import type { Problem } from "../problems.ts";

const logsKept = 50;

/** Where the output of a deployment is kept by the service. */
export function logPath(statePath: string, deploymentId: number): string {
  return join(statePath, "logs", `${deploymentId}.log`);
}

/** The highest number of a deployment that has a log, 0 if none has. */
export function lastLoggedId(statePath: string): number {
  const directory = join(statePath, "logs");
  const names = existsSync(directory) ? readdirSync(directory) : [];
  return names.reduce((last, name) => Math.max(last, Number(loggedId.exec(name)?.[1] ?? 0)), 0);
}

const loggedId = /^(\d{1,15})\.log(?:\.tail-[12])?$/;

/** The files of a log in the order of what they hold; while a deployment runs its end is in two of its own. */
export function logFiles(statePath: string, deploymentId: number): readonly string[] {
  const path = logPath(statePath, deploymentId);
  return [path, `${path}.tail-1`, `${path}.tail-2`];
}

/** Where the script is to write its own log: a file in a directory of ours in the temporary directory. */
export function deployLogPath(deploymentId: number): string {
  return join(deployLogDirectory(), `deploy-${deploymentId}.log`);
}

/**
 * What is wrong with the directory for the scripts' own logs, or null. It has a guessable name in a place where all may
 * write: whoever made it before us could read the logs, or have us write where a link leads.
 */
export function checkDeployLogDirectory(): Problem | null {
  const directory = deployLogDirectory();
  const stats = makeAndLook(directory);
  if (!stats) {
    const detail = `The directory ${directory}, in which deploy.sh writes its log, cannot be made. Make ${tmpdir()} writable for this user (uid ${ownUid()}), or set TMPDIR to a directory that is.`;
    return { code: "temporary_directory_unusable", detail };
  }
  if (stats.isDirectory() && stats.uid === ownUid() && (stats.mode & 0o022) === 0) return null;
  const detail = `${directory}, in which deploy.sh writes its log, is not a directory to which this user (uid ${ownUid()}) alone may write. Run: rm -rf ${directory}; or set TMPDIR to a directory of your own.`;
  return { code: "temporary_directory_unusable", detail };
}

/** Removes the oldest logs, of both kinds, where there are more than are kept. */
export function pruneLogs(statePath: string): void {
  pruneDirectory(join(statePath, "logs"), loggedId);
  if (checkDeployLogDirectory() === null) pruneDirectory(deployLogDirectory(), /^deploy-(\d+)\.log$/);
}

function pruneDirectory(directory: string, pattern: RegExp): void {
  if (!existsSync(directory)) return;
  const idOf = (name: string) => Number(pattern.exec(name)?.[1] ?? Number.NaN);
  const names = readdirSync(directory).filter((name) => pattern.test(name));
  const ids = [...new Set(names.map(idOf))].sort((one, other) => other - one);
  const oldestKept = ids[logsKept - 1] ?? 0;
  for (const name of names) if (idOf(name) < oldestKept) rmSync(join(directory, name), { force: true });
}

/** What is at `directory` after an attempt to make it; null where nothing is, and nothing can be. */
function makeAndLook(directory: string): Stats | null {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
  } catch {
    // What is there already decides.
  }
  try {
    return lstatSync(directory);
  } catch {
    return null;
  }
}

function deployLogDirectory(): string {
  return join(tmpdir(), `hotpush-${ownUid()}`);
}
