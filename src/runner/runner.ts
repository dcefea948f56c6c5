import { formatDuration } from "../config/duration.ts";
import type { Deployment, Runner } from "../deployments/deployment.ts";
import type { Log } from "../log.ts";
import { printable } from "../platform/terminal/printable.ts";
import { adoptRun } from "./adopt.ts";
import { scriptEnvironment } from "./environment.ts";
import { createScriptRedactor, type SecretSources } from "./known-secrets.ts";
import { longestLine } from "./lines.ts";
import { logPath, pruneLogs } from "./log-file.ts";
import type { RunContext, Silence } from "./run.ts";
import { removeRunDirectory, runDirectory } from "./run-directory.ts";
import type { Signing, VerifyTip } from "./signers/verify-tip.ts";
import { startRun } from "./start.ts";

export interface RunnerOptions extends SecretSources {
  readonly statePath: string;
  /** The branches that are deployed: no script is started for any other. */
  readonly refs: readonly string[];
  readonly deployTimeoutMs: number;
  /** A warning is logged after this much silence; 0: never. */
  readonly deploySilenceMs: number;
  /** Default: 15 s. */
  readonly timeoutGraceMs?: number;
  /** Default: 60 s. */
  readonly outOfSightMs?: number;
  /** Which commits may be deployed; null: commits need no signature. */
  readonly signing: Signing | null;
  readonly log: Log;
  /** Called at each step that a script begins. */
  readonly onStep: (deployment: Deployment, name: string) => void;
  /** Called with each line that a script prints, unchanged. */
  readonly onLine?: (deployment: Deployment, line: string) => void;
}

/** Runs deploy scripts. The caller starts only one at a time. */
export function createRunner(options: RunnerOptions): Runner {
  const { statePath, log } = options;
  const currentRedactor = createScriptRedactor(options);
  const contextOf = (deployment: Deployment): RunContext => ({
    deployment,
    statePath,
    repoPath: options.repoPath,
    refs: options.refs,
    directory: runDirectory(statePath, deployment.id),
    environment: scriptEnvironment(options, deployment),
    verifyTip: verifierOf(options),
    logPath: logPath(statePath, deployment.id),
    redactor: currentRedactor(),
    timeoutMs: options.deployTimeoutMs,
    timeoutGraceMs: options.timeoutGraceMs ?? 15_000,
    outOfSightMs: options.outOfSightMs ?? 60_000,
    silenceMs: options.deploySilenceMs,
    sink: {
      onLine(line) {
        log.info({ event: "deployment.output", deployment: deployment.id }, printable(line, longestLine));
        options.onLine?.(deployment, line);
      },
      onStep: (name) => options.onStep(deployment, printable(name)),
      onSilent: (silence) => logSilence(log, deployment, silence),
    },
  });
  return {
    start: (deployment) => startRun(contextOf(deployment)),
    adopt: (deployment) => adoptRun(contextOf(deployment)),
    tidy(deploymentId) {
      try {
        removeRunDirectory(runDirectory(statePath, deploymentId));
        pruneLogs(statePath);
      } catch (error) {
        // Old files do no harm, and the next run removes them.
        log.warn({ event: "runner.untidy", err: error }, "Files of old runs could not be removed");
      }
    },
  };
}

function verifierOf(options: RunnerOptions): VerifyTip | null {
  const { signing, log } = options;
  if (signing === null) return null;
  return async (deployment) => {
    // Most projects need no signatures, so this is loaded with the first deployment that needs one.
    const { verifyTip } = await import("./signers/verify-tip.ts");
    const tip = await verifyTip({ ...options, ...signing }, deployment);
    if (tip.kind === "verified") {
      const { commit, signer } = tip;
      const fields = { event: "deployment.verified", deployment: deployment.id, commit, signer };
      log.info(fields, `Commit ${commit.slice(0, 7)} is signed by ${signer}`);
    }
    return tip;
  };
}

function logSilence(log: Log, { id }: Deployment, { silentMs, step, lastLine, processes }: Silence): void {
  const where = step === null ? "" : ` in the step ${printable(step)}`;
  const last = lastLine === null ? "It has printed nothing at all." : `Its last line: ${printable(lastLine)}`;
  const waiting = processes.map((line) => `\n  ${line}`).join("");
  log.warn(
    { event: "deployment.silent", deployment: id, silentMs: Math.round(silentMs), step, lastLine, processes },
    `Deployment ${id} has been silent for ${formatDuration(silentMs)}${where}. ${last}${waiting && `\nIts processes:${waiting}`}`,
  );
}
