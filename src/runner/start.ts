import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Deployment, Run, Start } from "../deployments/deployment.ts";
import { checkScript } from "./check-script.ts";
import { binDirectory } from "./environment.ts";
import { openOutput } from "./output.ts";
import { prepareRun } from "./prepare.ts";
import { type KeeperExit, type RunContext, watchRun } from "./run.ts";
import {
  isLocked,
  listRuns,
  makeRunDirectory,
  readExitCode,
  removeRunDirectory,
  runDirectory,
} from "./run-directory.ts";

const keeperPath = fileURLToPath(new URL("keeper.sh", import.meta.url));

/**
 * Starts `REPO_PATH/deploy.sh <ref> <commit>`, after looking for what would keep it from starting and for a script that
 * a dead service left running.
 */
export async function startRun(context: RunContext): Promise<Start> {
  try {
    const problem = await checkScript(context.repoPath, context.environment);
    if (problem) return { kind: "refused", problem };
    const survivor = await findSurvivor(context);
    if (survivor !== null) {
      return {
        kind: "try-again",
        detail: `The script of deployment ${survivor} still runs, started by an earlier service.`,
      };
    }
    return { kind: "started", run: await spawnScript(context) };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    return { kind: "try-again", detail: `The script could not be started: ${message}.` };
  }
}

/** Another run whose script still runs; what is left of those that are over is cleared away. */
async function findSurvivor({ statePath, deployment }: RunContext): Promise<number | null> {
  for (const id of listRuns(statePath)) {
    const directory = runDirectory(statePath, id);
    // What a script that has ended left in the background may hold its lock for ever.
    const hasEnded = id === deployment.id || readExitCode(directory) !== null;
    if (!hasEnded && (await isLocked(directory))) return id;
    removeRunDirectory(directory);
  }
  return null;
}

async function spawnScript(context: RunContext): Promise<Run> {
  const { directory } = context;
  makeRunDirectory(directory);
  const lockFd = openSync(directory.lockPath, "w", 0o600);
  try {
    // Held before there is a script, so that there is no moment at which a service that dies leaves one without it.
    await prepareRun(directory, lockFd);
    return await spawnKeeper(context, lockFd);
  } finally {
    closeSync(lockFd);
  }
}

async function spawnKeeper(context: RunContext, lockFd: number): Promise<Run> {
  const { directory, environment, repoPath, deployment } = context;
  const output = openOutput({ ...context, pipePath: directory.outputPath });
  try {
    const child = spawn(keeperPath, [directory.path, ...commandFor(deployment, repoPath)], {
      cwd: repoPath,
      env: environment,
      detached: true,
      stdio: ["ignore", output.writeFd, output.writeFd, lockFd, output.keptOpenFd],
    });
    const exited = exitOf(child);
    const { pid } = await hasSpawned(child);
    return watchRun({ context, output, exited, group: () => pid, remainingMs: context.timeoutMs });
  } catch (error) {
    await output.finish();
    throw error;
  } finally {
    for (const fd of [output.writeFd, output.keptOpenFd]) closeSync(fd);
  }
}

/** A roll back takes the images that are here; the script would pull and build what the branch is now. */
function commandFor({ trigger, ref, commit }: Deployment, repoPath: string): readonly string[] {
  if (trigger === "rollback") return [join(binDirectory, "hotpush"), "rollout", "--to", commit];
  return [join(repoPath, "deploy.sh"), ref, commit];
}

function hasSpawned(child: ChildProcess): Promise<{ readonly pid: number }> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("spawn", () => resolve({ pid: child.pid ?? 0 }));
  });
}

function exitOf(child: ChildProcess): Promise<KeeperExit> {
  return new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
}
