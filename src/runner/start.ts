import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import type { Deployment, Run, Start } from "../deployments/deployment.ts";
import type { Problem } from "../problems.ts";
import { checkScript } from "./check-script.ts";
import { binDirectory, exactEnvironment } from "./environment.ts";
import { openOutput } from "./output.ts";
import { noteHead } from "./repository.ts";
import { type RunContext, watchRun } from "./run.ts";
import {
  isHeld,
  listRuns,
  makeRunDirectory,
  readExitCode,
  removeRunDirectory,
  runDirectory,
} from "./run-directory.ts";
import { noteVerified } from "./signers/check-deployed.ts";
import { type Supervisor, startSupervisor } from "./supervisor.ts";

/**
 * Starts `REPO_PATH/deploy.sh <ref> <commit>`. First it checks what would prevent the start, and whether a script of a
 * dead service still runs.
 */
export async function startRun(context: RunContext): Promise<Start> {
  try {
    const problem = checkRef(context) ?? (await checkScript(context.repoPath, context.environment));
    if (problem) return { kind: "refused", problem };
    const survivor = await findSurvivor(context);
    if (survivor !== null) {
      return {
        kind: "try-again",
        detail: `The script of deployment ${survivor}, started by an earlier service, still runs.`,
      };
    }
    return await startVerified(context);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    return { kind: "try-again", detail: `The script could not be started: ${message}.` };
  }
}

/** A roll back uses images that exist already: there is nothing to fetch and to verify. */
async function startVerified(context: RunContext): Promise<Start> {
  const { deployment, environment, verifyTip } = context;
  if (verifyTip === null || deployment.trigger === "rollback") {
    return { kind: "started", run: await spawnScript(context) };
  }
  const tip = await verifyTip(deployment);
  if (tip.kind !== "verified") return tip;
  const { commit } = tip;
  const exact = { deployment: { ...deployment, commit }, environment: exactEnvironment(environment, commit) };
  return { kind: "started", run: await spawnScript({ ...context, ...exact }, commit) };
}

/** BRANCH may have been set after the deployment was recorded, or differ in another instance. */
function checkRef({ deployment: { ref }, refs }: RunContext): Problem | null {
  if (refs.includes(ref)) return null;
  const detail = `${ref} is not deployed: BRANCH names ${refs.join(", ").replace("refs/heads/", "")}. Nothing was run. To deploy that branch: hotpush deploy`;
  return { code: "branch_not_selected", detail };
}

/** Another run whose script still runs; the files of ended runs are removed. */
async function findSurvivor({ statePath, repoPath, deployment }: RunContext): Promise<number | null> {
  for (const id of listRuns(statePath)) {
    const directory = runDirectory(statePath, id);
    // A background process of an ended script may hold its lock for ever.
    const hasEnded = id === deployment.id || readExitCode(directory) !== null;
    if (!hasEnded && (await isHeld(directory, id, repoPath))) return id;
    removeRunDirectory(directory);
  }
  return null;
}

/** @param verified the commit that must be checked out when the script ends; null: any */
async function spawnScript(context: RunContext, verified: string | null = null): Promise<Run> {
  const { directory, environment, repoPath, deployment } = context;
  makeRunDirectory(directory);
  if (verified !== null) noteVerified(directory, verified);
  const lockFd = openSync(directory.lockPath, "w", 0o600);
  try {
    const command = commandFor(deployment, repoPath);
    const [supervisor] = await Promise.all([
      startSupervisor({ directory, lockFd, command, cwd: repoPath, environment }),
      noteHead(directory, repoPath, environment),
    ]);
    return await runScript(context, supervisor);
  } finally {
    closeSync(lockFd);
  }
}

async function runScript(context: RunContext, supervisor: Supervisor): Promise<Run> {
  try {
    const output = openOutput({ ...context, pipePath: context.directory.outputPath });
    supervisor.startScript();
    const { pid, exited } = supervisor;
    const own = { exited: () => exited, group: () => pid, wasInSight: true };
    return watchRun({ context, output, ...own, remainingMs: context.timeoutMs });
  } catch (error) {
    await supervisor.dismiss();
    throw error;
  }
}

/** A roll back uses the images of this machine; the script would pull and build the current branch. */
function commandFor({ trigger, ref, commit }: Deployment, repoPath: string): readonly string[] {
  if (trigger === "rollback") return [join(binDirectory, "hotpush"), "rollout", "--to", commit];
  return [join(repoPath, "deploy.sh"), ref, commit];
}
