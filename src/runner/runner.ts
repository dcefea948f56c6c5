import { formatDuration } from "../config/duration.ts";
import type { Deployment, Runner } from "../deployments/deployment.ts";
import type { Log } from "../log.ts";
import { printable } from "../platform/terminal/printable.ts";
import { adoptRun } from "./adopt.ts";
import { scriptEnvironment } from "./environment.ts";
import { createScriptRedactor, type SecretSources } from "./known-secrets.ts";
import { longestLine } from "./lines.ts";
import { deployLogPath, logPath, pruneLogs } from "./log-paths.ts";
import type { RunContext, Silence } from "./run.ts";
import { removeRunDirectory, runDirectory } from "./run-directory.ts";
import type { Signing, VerifyTip } from "./signers/verify-tip.ts";
import { startRun } from "./start.ts";

export interface RunnerOptions extends SecretSources {
  readonly statePath: string;
  /** The branches that are deployed: no script is started for any other. */
  readonly refs: readonly string[];
  readonly deployTimeoutMs: number;
  /** A script that prints nothing for this long is told of; 0: never. */
  readonly deploySilenceMs: number;
  /** 15 s where it is not given. */
  readonly timeoutGraceMs?: number;
  /** 60 s where it is not given. */
  readonly outOfSightMs?: number;
  /** Which commits may be deployed; null: commits need no signature. */
  readonly signing: Signing | null;
  readonly log: Log;
  /** Told of each step that a script begins. */
  readonly onStep: (deployment: Deployment, name: string) => void;
  /** Told of each line that a script prints, as it stands. */
  readonly onLine?: (deployment: Deployment, line: string) => void;
}

/** Runs deploy scripts; that there is only one at a time is seen to by who asks. */
export function createRunner(options: RunnerOptions): Runner {
  const { statePath, log } = options;
  const currentRedactor = createScriptRedactor(options);
  const contextOf = (deployment: Deployment): RunContext => ({
    deployment,
    statePath,
    repoPath: options.repoPath,
    refs: options.refs,
    directory: runDirectory(statePath, deployment.id),
    environment: scriptEnvironment(options, deployment, deployLogPath(deployment.id)),
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
        // What lies about does no harm: it is cleared away next time.
        log.warn({ event: "runner.untidy", err: error }, "What is left of old runs could not be removed");
      }
    },
  };
}

function verifierOf(options: RunnerOptions): VerifyTip | null {
  const { signing, log } = options;
  if (signing === null) return null;
  return async (deployment) => {
    // Most projects need no signatures, so this is loaded with the first deployment that does.
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
