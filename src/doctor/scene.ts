import { type Branch, type Environment, loadConfig, variables } from "../config.ts";
import { ProblemError } from "../problems.ts";
import { childEnvironment } from "../runner/environment.ts";
import { type ComposeAnswer, readCompose } from "./docker/read-compose.ts";
import { type EngineAnswer, readEngine } from "./docker/read-engine.ts";
import { askRemote, type RemoteAnswer } from "./git/ask-remote.ts";
import { type FoundService, findService } from "./service/find-service.ts";
import type { Settings } from "./settings/settings.ts";

/** What the checks look at. What takes a while is asked once, by the first check that wants it. */
export interface Scene {
  readonly settings: Settings;
  /** Every line that `loadConfig` refuses, or none. */
  readonly configFaults: readonly string[];
  readonly configWarnings: readonly string[];
  /** The secret, or null where it is none that can be used. */
  readonly secret: string | null;
  readonly port: number;
  readonly host: string;
  readonly repoPath: string;
  readonly branch: Branch | null;
  readonly allowedSigners: string | null;
  readonly statePath: string;
  /** The environment that the script will get. */
  readonly scriptEnv: Record<string, string>;
  /** The webhook's address as it was asked for on the command line. */
  readonly askedUrl: string | null;
  readonly remote: () => Promise<RemoteAnswer>;
  readonly compose: () => Promise<ComposeAnswer>;
  readonly engine: () => Promise<EngineAnswer>;
  readonly service: () => Promise<FoundService>;
}

/** Reads what is set, leniently: a value that cannot be used is told by its own check, and its default stands in here. */
export function makeScene(settings: Settings, askedUrl: string | null): Scene {
  const { env } = settings;
  const { secret, faults, warnings } = readConfig(env);
  const repoPath = lenient(env, "REPO_PATH");
  const deployEnv = lenient(env, "DEPLOY_ENV");
  const scriptEnv = childEnvironment({ env, deployEnv, repoPath });
  const [port, host] = [lenient(env, "WEBHOOK_PORT"), lenient(env, "WEBHOOK_HOST")];
  const engine = once(() => readEngine(scriptEnv));
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
    askedUrl,
    remote: once(() => askRemote(repoPath, scriptEnv)),
    compose: once(() => readCompose(repoPath, scriptEnv)),
    engine,
    service: once(() => findService(host, port, secret)),
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

/** The value of a variable; its default where what is set cannot be used, which the check of it tells. */
function lenient<Name extends keyof typeof variables>(env: Environment, name: Name) {
  type Value = NonNullable<ReturnType<(typeof variables)[Name]["read"]>>;
  const { read, fallback } = variables[name];
  const value = read(env[name]?.trim() || fallback(env)) ?? read(fallback(env));
  return value as Value;
}

function once<Value>(ask: () => Promise<Value>): () => Promise<Value> {
  let asked: Promise<Value> | null = null;
  return () => {
    asked ??= ask();
    return asked;
  };
}
