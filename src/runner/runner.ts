import { existsSync, lchownSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { formatDuration } from "#config/values";
import {
  type Adoption,
  type Deployment,
  type Ending,
  type NotStarted,
  type Run,
  type Runner,
  type Start,
  soon,
} from "#deployments/deployment";
import { branchOf, shortCommit } from "#deployments/push";
import type { Decision } from "#deployments/resolve";
import type { Log } from "#log";
import type { SystemUser } from "#platform/files";
import { listForeignDirectory, removeForeignFile } from "#platform/foreign-files";
import { checkedOutCommit } from "#platform/git";
import { isShortage, runAs } from "#platform/run-command";
import { printable } from "#platform/terminal";
import type { Problem } from "#problems";
import type { Redactor } from "#redaction";
import { type EarlyReason, endedByItself, endedEarly, killed, killedWithService } from "./ending.ts";
import { type FinishOutput, logPath, longestLine, type OutputOptions, openOutput } from "./log-file.ts";
import {
  binDirectory,
  checkDeployLogDirectory,
  checkScript,
  deployLogDirectory,
  makeScriptState,
  type ProjectScript,
  runSecretCommands,
  scriptEnvironment,
} from "./script.ts";
import {
  findSurvivor,
  groupOf,
  isHeld,
  makeRunDirectory,
  readExitCode,
  readVerified,
  runDirectory,
  type SupervisorExit,
  startSupervisor,
  terminateGroup,
} from "./supervisor.ts";

export interface RunnerOptions {
  readonly script: ProjectScript;
  readonly statePath: string;
  /** The branches that are deployed: no script is started for any other. */
  readonly refs: readonly string[];
  readonly deployTimeoutMs: number;
  /** A warning is logged after this much silence; 0: never. */
  readonly deploySilenceMs: number;
  /** Decides what a deployment deploys. */
  readonly resolve: (deployment: Deployment, signal: AbortSignal) => Promise<Decision>;
  /** What its roll-out is told of images in registries; null: nothing. */
  readonly imagesFor: (deployment: Deployment) => string | null;
  readonly log: Log;
  /** Called at each step that a script begins. */
  readonly onStep: (deployment: Deployment, name: string) => void;
  /** Called after each line that a script prints; the log has it. */
  readonly onLine: (deployment: Deployment) => void;
}

/**
 * Runs deploy scripts. The caller starts only one at a time.
 *
 * @param now the options as they are when a run starts or is adopted
 */
export function createRunner(now: () => RunnerOptions): Runner {
  return {
    start: (deployment, signal) => startRun(now(), deployment, signal),
    adopt(deployment) {
      const options = now();
      const context = contextOf(options, deployment);
      // What the commands printed when it started is not known any more.
      const isHidden = Object.keys(options.script.secretCommands).length > 0;
      return adoptRun(isHidden ? { ...context, redactor: hidesAll } : context);
    },
    tidy(deploymentId) {
      const { statePath, script, log } = now();
      try {
        rmSync(runDirectory(statePath, deploymentId), { recursive: true, force: true });
        pruneLogs(statePath, script.user);
      } catch (error) {
        // Old files do no harm, and the next run removes them.
        log.warn({ event: "runner.untidy", err: error }, "Files of old runs could not be removed");
      }
    },
  };
}

/**
 * Starts `REPO_PATH/deploy.sh <ref> <commit>`. First it checks what would prevent the start, whether a script of a dead
 * service still runs, and which commit is to be deployed.
 */
async function startRun(options: RunnerOptions, deployment: Deployment, signal: AbortSignal): Promise<Start> {
  try {
    const { repoPath } = options.script;
    const problem = checkRef(options, deployment) ?? (await checkScript(options.script));
    if (problem) return { kind: "refused", problem };
    const survivor = await findSurvivor(options.statePath, deployment.id, repoPath);
    if (survivor !== null) {
      const reason = `The script of deployment ${survivor}, started by an earlier service, still runs.`;
      return { kind: "wait", reason, rest: soon };
    }
    makeScriptState(options.script);
    const decision = await options.resolve(deployment, signal);
    if (decision.kind !== "deploy") return decision;
    const secrets = await runSecretCommands(options.script, signal);
    if (secrets.kind !== "printed") return secrets;
    const script = options.script.withSecrets(secrets.values);
    const context = contextOf({ ...options, script }, { ...deployment, commit: decision.commit });
    return { kind: "started", run: await startScript(context, decision.isSigned) };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    return { kind: "wait", reason: `The script could not be started: ${message}.`, rest: soon };
  }
}

/** BRANCH may have been set after the deployment was recorded, or differ in another instance. */
function checkRef({ refs }: RunnerOptions, { ref }: Deployment): Problem | null {
  if (refs.includes(ref)) return null;
  const detail = `${ref} is not deployed: BRANCH names ${refs.map(branchOf).join(", ")}. Nothing was run. To deploy the named branch: hotpush deploy`;
  return { code: "branch_not_selected", detail };
}

/** For output that may have secrets which are not known any more. */
const hidesAll: Redactor = {
  text: () => "***",
  beginning: () => ({ shown: "", rest: "" }),
};

/** Everything that one run of the script needs. */
interface RunContext extends OutputOptions {
  readonly deployment: Deployment;
  readonly repoPath: string;
  readonly directory: string;
  /** The user that the script runs as; null: the user of this process. */
  readonly user: SystemUser | null;
  readonly environment: Record<string, string>;
  readonly timeoutMs: number;
}

function contextOf(options: RunnerOptions, deployment: Deployment): RunContext {
  const { statePath, script, log } = options;
  const { id } = deployment;
  const directory = runDirectory(statePath, id);
  const images = options.imagesFor(deployment);
  return {
    deployment,
    repoPath: script.repoPath,
    directory,
    user: script.user,
    environment: { ...scriptEnvironment(script, deployment), ...(images && { HOTPUSH_IMAGES: images }) },
    pipePath: join(directory, "output"),
    logPath: logPath(statePath, id),
    redactor: script.redactor(),
    timeoutMs: options.deployTimeoutMs,
    onLine(line) {
      log.info({ event: "deployment.output", deployment: id }, printable(line, longestLine));
      options.onLine(deployment);
    },
    onStep: (name) => options.onStep(deployment, printable(name)),
    silenceMs: options.deploySilenceMs,
    onSilence(silentMs, { step, lastLine }) {
      const where = step === null ? "" : ` in the step ${printable(step)}`;
      const last =
        lastLine === null ? "It has printed nothing at all." : `Its last line: ${printable(lastLine)}`;
      log.warn(
        { event: "deployment.silent", deployment: id, silentMs: Math.round(silentMs), step, lastLine },
        `Deployment ${id} has been silent for ${formatDuration(silentMs)}${where}. ${last}`,
      );
    },
  };
}

/** @param isSigned whether the signature of its commit was verified, so that no other may be deployed */
async function startScript(context: RunContext, isSigned: boolean): Promise<Run> {
  const { directory, environment, user, repoPath, deployment, pipePath } = context;
  makeRunDirectory(directory, isSigned ? deployment.commit : null);
  const command = [...runAs(user), ...commandFor(deployment, repoPath)];
  const supervisor = await startSupervisor(directory, command, { cwd: repoPath, env: environment });
  try {
    // A script may open its output by a name such as /dev/stderr: that takes the right to write to the pipe.
    if (user !== null) lchownSync(pipePath, user.uid, user.gid);
    const finishOutput = openOutput(context);
    supervisor.startScript();
    return watchRun(context, { finishOutput, exited: () => supervisor.exited, group: () => supervisor.pid });
  } catch (error) {
    await supervisor.dismiss();
    throw error;
  }
}

/** A roll back uses the images of this machine; the script would pull and build the current branch. */
function commandFor({ trigger, ref, commit }: Deployment, repoPath: string): readonly string[] {
  if (trigger === "rollback") return [join(binDirectory, "hotpush"), "rollout", "--back", commit];
  return [join(repoPath, "deploy.sh"), ref, commit];
}

/**
 * Takes over a run whose service died. The lock that its script holds and the exit code that it left show the result of
 * it. Files of the run may be missing or unreadable, as in a state directory that was restored from a backup.
 *
 * @throws only errors for which `isShortage` is true
 */
async function adoptRun(context: RunContext): Promise<Adoption> {
  const { directory, deployment, repoPath } = context;
  const wasLocked = await isHeld(directory, deployment.id, repoPath);
  // In this order: a script that ends in between writes its exit code before it releases the lock.
  const exitCode = readExitCode(directory);
  const group = () => groupOf(directory, deployment.id, repoPath);
  if (exitCode === null && wasLocked) {
    const exited = (isKnown: AbortSignal) => waitForEnd(context, isKnown);
    return { kind: "alive", run: watchRun(context, { finishOutput: resumeOutput(context), group, exited }) };
  }
  if (exitCode === null) {
    // What is left has closed the lock. It must not run beside the next attempt.
    await terminateGroup(group(), remainsGraceMs);
    return { kind: "gone", hasBegun: hasBegun(directory) };
  }
  const printed = await resumeOutput(context)();
  const ending = endedByItself(exitCode, printed, await findOtherCommit(context, exitCode));
  return { kind: "ended", ending };
}

/** supervisor.sh writes its process id before it starts the script. */
function hasBegun(directory: string): boolean {
  return existsSync(join(directory, "pid"));
}

/** If the output cannot be read on, its last line says so. */
function resumeOutput(context: RunContext): FinishOutput {
  try {
    return openOutput(context);
  } catch (error) {
    if (isShortage(error)) throw error;
    const lastLine = `[The rest of the output is lost: ${(error as Error).message}]`;
    context.onLine(lastLine);
    return async () => ({ step: null, lastLine });
  }
}

/** How often the exit code is looked for, and how many looks later the lock. */
const lookEveryMs = 200;
const looksForLock = 5;

/**
 * Resolves when the script has written its exit code, or when nothing holds its lock any more; never rejects. Both are
 * needed: a background process of the script may hold the lock for ever, and a killed script writes no exit code.
 *
 * @param isKnown aborted when the end is known by other means
 */
async function waitForEnd(context: RunContext, isKnown: AbortSignal): Promise<null> {
  const { directory, deployment, repoPath } = context;
  for (let look = 1; !isKnown.aborted; look += 1) {
    if (readExitCode(directory) !== null) return null;
    // A lack of a process or memory says nothing about the script.
    const holds = () => isHeld(directory, deployment.id, repoPath).catch(() => true);
    if (look % looksForLock === 0 && !(await holds())) return null;
    await sleep(lookEveryMs);
  }
  return null;
}

interface Watched {
  readonly finishOutput: FinishOutput;
  /**
   * Resolves when supervisor.sh, and so the script, has ended; null if nobody saw how. `isKnown` is aborted when nobody
   * waits for it any more.
   */
  readonly exited: (isKnown: AbortSignal) => Promise<SupervisorExit | null>;
  /** The process group to end, or null if it cannot be found any more. */
  readonly group: () => number | null;
}

/** How long a script may take to exit after its time-out, before it is killed. */
const timeoutGraceMs = 15_000;

/**
 * Waits for the end of a script: by itself, at its time-out, or on request. The first reason counts. The time of an adopted one
 * begins anew: nothing on disk says truly how long it has run.
 */
function watchRun(context: RunContext, watched: Watched): Run {
  const { finishOutput, exited, group } = watched;
  const terminated = Promise.withResolvers<readonly [EarlyReason, wasForced: boolean]>();
  const known = new AbortController();
  let isEnding = false;

  function end(reason: EarlyReason, graceMs: number): void {
    if (isEnding) return;
    isEnding = true;
    const ended = terminateGroup(group(), graceMs);
    ended.then((wasForced) => terminated.resolve([reason, wasForced]), terminated.reject);
  }

  const timer = setTimeout(() => end("timed_out", timeoutGraceMs), context.timeoutMs);

  async function waitForEnding(): Promise<Ending | NotStarted> {
    const exit = await Promise.race([exited(known.signal), terminated.promise.then(() => null)]);
    known.abort();
    clearTimeout(timer);
    if (!isEnding) {
      isEnding = true;
      return await concludeExit(context, watched, exit);
    }
    return endedEarly(...(await terminated.promise), context.timeoutMs, await finishOutput());
  }

  return { ended: waitForEnding(), end };
}

/**
 * Why the version that a script deployed may be another one, if commits must be signed: what is checked out at its end is not
 * the commit whose signature was verified, or cannot be compared with it. Null if it is, or the script has failed anyway.
 */
async function findOtherCommit(context: RunContext, exitCode: number): Promise<string | null> {
  const { directory, repoPath, environment: env, user } = context;
  try {
    const verified = exitCode === 0 ? readVerified(directory) : null;
    if (verified === null) return null;
    const deployed = await checkedOutCommit(repoPath, { env, user });
    if (deployed === verified) return null;
    const found = deployed === null ? "no commit" : shortCommit(deployed);
    return `${found} is checked out and not ${shortCommit(verified)}, whose signature was verified: what runs now may be unsigned`;
  } catch (error) {
    return `the commit could not be compared (${(error as Error).message})`;
  }
}

/** Exit code of supervisor.sh if the script was not started. */
const notStartedCode = 75;

/** How long the rest of a script may take to exit after its supervisor was killed from outside. */
const remainsGraceMs = 2_000;

async function concludeExit(
  context: RunContext,
  { finishOutput, group }: Watched,
  exit: SupervisorExit | null,
): Promise<Ending | NotStarted> {
  // The exit code that supervisor.sh could not write to its file was seen, unless no script was started.
  const seen = exit === null || exit.code === notStartedCode ? null : exit.code;
  const exitCode = readExitCode(context.directory) ?? seen;
  if (exitCode === null) await terminateGroup(group(), remainsGraceMs);
  const printed = await finishOutput();
  if (exitCode !== null) return endedByItself(exitCode, printed, await findOtherCommit(context, exitCode));
  // A killed container releases the service's lock before its last process is gone.
  if (exit === null && hasBegun(context.directory)) return killedWithService(printed);
  if (exit?.signal) return killed(exit.signal, printed);
  const reason = printable(printed.lastLine ?? "no reason given");
  return { state: "not_started", detail: `The script could not be started (${reason}).` };
}

const logsKept = 50;

/** Removes the oldest logs of the service and of the scripts if there are more than 50. */
function pruneLogs(statePath: string, user: SystemUser | null): void {
  pruneDirectory(join(statePath, "logs"), /^(\d+)\.log$/);
  if (checkDeployLogDirectory(user) === null) pruneDirectory(deployLogDirectory(user), /^deploy-(\d+)\.log$/);
}

/** Its user may have put a link in its place, or any number of files beside the logs. */
function pruneDirectory(directory: string, pattern: RegExp): void {
  if (!existsSync(directory)) return;
  const idOf = (name: string) => Number(pattern.exec(name)?.[1]);
  const names = listForeignDirectory(directory).filter((name) => pattern.test(name));
  const oldest = names.sort((one, other) => idOf(other) - idOf(one)).slice(logsKept);
  for (const name of oldest) removeForeignFile(join(directory, name));
}
