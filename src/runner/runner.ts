import { lchownSync } from "node:fs";
import { join } from "node:path";
import type { Deployment, Run, Runner, Start } from "#deployments/deployment";
import type { Decision } from "#deployments/resolve";
import type { Log } from "#log";
import { printable } from "#platform/terminal";
import { runAs } from "#platform/users";
import type { Problem } from "#problems";
import { adoptRun } from "./adopt.ts";
import { checkScript } from "./check-script.ts";
import { binDirectory, scriptEnvironment } from "./environment.ts";
import { logPath, longestLine, pruneLogs } from "./log-file.ts";
import { openOutput } from "./output.ts";
import { makeScriptState, type ProjectScript } from "./script.ts";
import {
  findSurvivor,
  makeRunDirectory,
  removeRunDirectory,
  runDirectory,
  type Supervisor,
  startSupervisor,
} from "./supervisor.ts";
import { type RunContext, watchRun } from "./watch-run.ts";

export interface RunnerOptions {
  readonly script: () => ProjectScript;
  readonly statePath: string;
  /** The branches that are deployed: no script is started for any other. */
  readonly refs: readonly string[];
  readonly deployTimeoutMs: number;
  /** A warning is logged after this much silence; 0: never. */
  readonly deploySilenceMs: number;
  /** How long a script may take to exit after its time-out, before it is killed. Default: 15 s. */
  readonly timeoutGraceMs?: number;
  /** How long an adopted run without a visible process may take to release its lock. Default: 60 s. */
  readonly outOfSightMs?: number;
  /** Decides what a deployment deploys. Without it, that is the commit that it was asked for. */
  readonly resolve?: (deployment: Deployment) => Promise<Decision>;
  readonly log: Log;
  /** Called at each step that a script begins. */
  readonly onStep: (deployment: Deployment, name: string) => void;
  /** Called after each line that a script prints; the log has it. */
  readonly onLine?: (deployment: Deployment) => void;
}

/** Runs deploy scripts. The caller starts only one at a time. */
export function createRunner(options: RunnerOptions): Runner {
  const { statePath, log } = options;
  const now = (): RunOptions => ({ ...options, script: options.script() });
  return {
    start: (deployment) => startRun(now(), deployment),
    adopt: (deployment) => adoptRun(contextOf(now(), deployment)),
    tidy(deploymentId) {
      try {
        removeRunDirectory(runDirectory(statePath, deploymentId));
        pruneLogs(statePath, options.script().user);
      } catch (error) {
        // Old files do no harm, and the next run removes them.
        log.warn({ event: "runner.untidy", err: error }, "Files of old runs could not be removed");
      }
    },
  };
}

/** With the script as it is when a run starts or is adopted. */
type RunOptions = Omit<RunnerOptions, "script"> & { readonly script: ProjectScript };

/**
 * Starts `REPO_PATH/deploy.sh <ref> <commit>`. First it checks what would prevent the start, whether a script of a dead
 * service still runs, and which commit is to be deployed.
 */
async function startRun(options: RunOptions, deployment: Deployment): Promise<Start> {
  try {
    const { repoPath } = options.script;
    const problem = checkRef(options, deployment) ?? (await checkScript(options.script));
    if (problem) return { kind: "refused", problem };
    const survivor = await findSurvivor(options.statePath, deployment.id, repoPath);
    if (survivor !== null) {
      const detail = `The script of deployment ${survivor}, started by an earlier service, still runs.`;
      return { kind: "try-again", detail };
    }
    makeScriptState(options.script);
    const decision = (await options.resolve?.(deployment)) ?? asAsked(deployment);
    if (decision.kind !== "deploy") return decision;
    const resolved = { ...deployment, commit: decision.commit };
    return { kind: "started", run: await spawnScript(contextOf(options, resolved), decision.isSigned) };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    return { kind: "try-again", detail: `The script could not be started: ${message}.` };
  }
}

/** BRANCH may have been set after the deployment was recorded, or differ in another instance. */
function checkRef({ refs }: RunOptions, { ref }: Deployment): Problem | null {
  if (refs.includes(ref)) return null;
  const detail = `${ref} is not deployed: BRANCH names ${refs.join(", ").replace("refs/heads/", "")}. Nothing was run. To deploy the named branch: hotpush deploy`;
  return { code: "branch_not_selected", detail };
}

function asAsked({ commit }: Deployment): Decision {
  return { kind: "deploy", commit, isSigned: false };
}

function contextOf(options: RunOptions, deployment: Deployment): RunContext {
  const { statePath, script, log } = options;
  return {
    deployment,
    repoPath: script.repoPath,
    directory: runDirectory(statePath, deployment.id),
    user: script.user,
    environment: scriptEnvironment(script, deployment),
    logPath: logPath(statePath, deployment.id),
    redactor: script.redactor(),
    timeoutMs: options.deployTimeoutMs,
    timeoutGraceMs: options.timeoutGraceMs ?? 15_000,
    outOfSightMs: options.outOfSightMs ?? 60_000,
    silenceMs: options.deploySilenceMs,
    sink: {
      onLine(line) {
        log.info({ event: "deployment.output", deployment: deployment.id }, printable(line, longestLine));
        options.onLine?.(deployment);
      },
      onStep: (name) => options.onStep(deployment, printable(name)),
    },
    log,
  };
}

/** @param isSigned whether the signature of its commit was verified, so that no other may be deployed */
async function spawnScript(context: RunContext, isSigned: boolean): Promise<Run> {
  const { directory, environment, user, repoPath, deployment } = context;
  makeRunDirectory(directory, isSigned ? deployment.commit : null);
  const command = [...runAs(user), ...commandFor(deployment, repoPath)];
  return runScript(context, await startSupervisor({ directory, command, cwd: repoPath, environment }));
}

/** A roll back uses the images of this machine; the script would pull and build the current branch. */
function commandFor({ trigger, ref, commit }: Deployment, repoPath: string): readonly string[] {
  if (trigger === "rollback") return [join(binDirectory, "hotpush"), "rollout", "--to", commit];
  return [join(repoPath, "deploy.sh"), ref, commit];
}

async function runScript(context: RunContext, supervisor: Supervisor): Promise<Run> {
  try {
    letUserOpenOutput(context);
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

/** A script may open its output by a name such as /dev/stderr: that takes the right to write to the pipe. */
function letUserOpenOutput({ user, directory }: RunContext): void {
  if (user !== null) lchownSync(directory.outputPath, user.uid, user.gid);
}
