import { type Branch, type Environment, loadConfig, variables } from "../config.ts";
import { gitOutput, runGit } from "../platform/git.ts";
import type { CommandEnding } from "../platform/run-command.ts";
import { ProblemError } from "../problems.ts";
import { childEnvironment } from "../runner/environment.ts";
import { type ComposeAnswer, type EngineAnswer, probeCompose, probeEngine } from "./docker/probe-docker.ts";
import { probeRemote, type RemoteAnswer } from "./git/probe-remote.ts";
import { probeService, type ServiceAnswer } from "./service/probe-service.ts";
import type { Settings } from "./settings.ts";

/** What the checks look at. The four slow probes run at most once, when the first check asks for their answer. */
export interface DoctorContext {
  readonly settings: Settings;
  /** Every line that `loadConfig` refuses, or none. */
  readonly configFaults: readonly string[];
  readonly configWarnings: readonly string[];
  /** The secret, or null if the configuration has no usable one. */
  readonly secret: string | null;
  readonly port: number;
  readonly host: string;
  readonly repoPath: string;
  readonly branch: Branch | null;
  readonly allowedSigners: string | null;
  readonly statePath: string;
  /** The environment that the script will get. */
  readonly scriptEnv: Record<string, string>;
  /** The webhook's address from the command line. */
  readonly givenUrl: string | null;
  /** Runs git in the repository with the script's environment, for 10 s at most. */
  readonly git: (...args: readonly string[]) => Promise<CommandEnding>;
  /** The trimmed output of git in the repository, null if it fails. */
  readonly readGit: (...args: readonly string[]) => Promise<string | null>;
  readonly remote: () => Promise<RemoteAnswer>;
  readonly compose: () => Promise<ComposeAnswer>;
  readonly engine: () => Promise<EngineAnswer>;
  readonly service: () => Promise<ServiceAnswer>;
}

/** Reads the settings leniently: a value that cannot be used has a check of its own, and its default stands in here. */
export function makeDoctorContext(settings: Settings, givenUrl: string | null): DoctorContext {
  const { env } = settings;
  const { secret, faults, warnings } = readConfig(env);
  const repoPath = lenient(env, "REPO_PATH");
  const scriptEnv = childEnvironment({ env, deployEnv: lenient(env, "DEPLOY_ENV"), repoPath });
  const [port, host] = [lenient(env, "WEBHOOK_PORT"), lenient(env, "WEBHOOK_HOST")];
  return {
    settings,
    configFaults: faults,
    configWarnings: warnings,
    secret,
    port,
    host,
    repoPath,
    branch: lenient(env, "BRANCH") || null,
    allowedSigners: lenient(env, "ALLOWED_SIGNERS") || null,
    statePath: lenient(env, "STATE_PATH"),
    scriptEnv,
    givenUrl,
    git: (...args) => runGit(repoPath, args, { env: scriptEnv }),
    readGit: (...args) => gitOutput(repoPath, args, { env: scriptEnv }),
    remote: once(() => probeRemote(repoPath, scriptEnv)),
    compose: once(() => probeCompose(repoPath, scriptEnv)),
    engine: once(() => probeEngine(scriptEnv)),
    service: once(() => probeService(host, port, secret)),
  };
}

function readConfig(env: Environment): {
  readonly secret: string | null;
  readonly faults: readonly string[];
  readonly warnings: readonly string[];
} {
  try {
    const { config, warnings } = loadConfig(env);
    return { secret: config.secrets.current.reveal(), faults: [], warnings };
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    return { secret: null, faults: error.problem.detail.split("\n"), warnings: [] };
  }
}

/** The value of a variable, or its default if the value cannot be used. */
function lenient<Name extends keyof typeof variables>(env: Environment, name: Name) {
  type Value = NonNullable<ReturnType<(typeof variables)[Name]["read"]>>;
  const { read, fallback } = variables[name];
  const value = read(env[name]?.trim() || fallback(env)) ?? read(fallback(env));
  return value as Value;
}

function once<Value>(probe: () => Promise<Value>): () => Promise<Value> {
  let answer: Promise<Value> | null = null;
  return () => {
    answer ??= probe();
    return answer;
  };
}
