import { type Environment, readVariables, variables } from "../config/settings.ts";
import { loadConfig } from "../config.ts";
import type { MachinePart } from "../machine-part/find.ts";
import { gitOutput, runGit } from "../platform/git.ts";
import { ProblemError } from "../problems.ts";
import type { ProjectReading } from "../projects/read-project-file.ts";
import { childEnvironment } from "../runner/environment.ts";
import { ownerOf } from "../runner/script-user.ts";
import { probeCompose, probeEngine } from "./docker/probe-docker.ts";
import { probeRemote } from "./git/probe-remote.ts";
import { caddyAddress, probeMachineContainers } from "./machine-part/probe-machine-part.ts";
import { probeRoles } from "./projects/probe-roles.ts";
import { probeService } from "./service/probe-service.ts";
import type { Settings } from "./settings.ts";

/** What the checks look at. */
export type DoctorContext = ReturnType<typeof makeDoctorContext>;

/**
 * Reads the settings leniently: a value that cannot be used has a check of its own, and its default stands in here. The
 * slow probes run at most once, when the first check asks for their answer.
 *
 * @param givenUrl the webhook's address from the command line
 * @param machinePart the machine part that the service belongs to, if it does
 * @param project what the file of a project says, if there are several
 */
export function makeDoctorContext(
  settings: Settings,
  givenUrl: string | null,
  machinePart: MachinePart | null = null,
  project: ProjectReading | null = null,
) {
  const { env } = settings;
  const config = project === null ? readConfig(env) : configOf(project);
  const name = project?.name ?? null;
  const repoPath = lenient(env, "REPO_PATH");
  const [port, host] = [lenient(env, "WEBHOOK_PORT"), lenient(env, "WEBHOOK_HOST")];
  /** The user that the script will run as; null: this one. */
  const scriptUser = project === null ? null : ownerOf(repoPath, env.DOCKER_HOST);
  /** The environment that the script will get. */
  const deployEnv = lenient(env, "DEPLOY_ENV");
  const scriptEnv = childEnvironment({ env, deployEnv, repoPath, user: scriptUser });
  const asScript = { env: scriptEnv, user: scriptUser };
  const engine = once(() => probeEngine(scriptEnv));
  /** In the machine part, `receive` has no port of its own. */
  const address = machinePart === null ? { host, port } : caddyAddress(machinePart, "http");
  return {
    ...{ settings, givenUrl, machinePart, repoPath, port, host, scriptEnv, scriptUser, ...config },
    /** null: the only project, or the service as a whole. */
    project: name,
    projectsPath: lenient(env, "PROJECTS_PATH") || null,
    secretsPath: lenient(env, "SECRETS_PATH") || null,
    branch: lenient(env, "BRANCH") || null,
    allowedSigners: lenient(env, "ALLOWED_SIGNERS") || null,
    commitStatus: {
      repository: lenient(env, "COMMIT_STATUS_URL") || null,
      tokenPath: lenient(env, "COMMIT_STATUS_TOKEN_FILE") || null,
    },
    statePath: lenient(env, "STATE_PATH"),
    /** Runs git in the repository as the script would, for 10 s at most. */
    git: (...args: readonly string[]) => runGit(repoPath, args, asScript),
    /** The trimmed output of git in the repository, null if it fails. */
    readGit: (...args: readonly string[]) => gitOutput(repoPath, args, asScript),
    remote: once(() => probeRemote(repoPath, asScript)),
    compose: once(() => probeCompose(repoPath, asScript)),
    engine,
    /** null if the engine cannot be asked. */
    machineContainers: once(async () => {
      const docker = await engine();
      return docker.kind === "answers" ? await probeMachineContainers(docker.engine) : null;
    }),
    service: once(() => probeService(address, config.secret, name)),
    roles: once(() => probeRoles(env, lenient(env, "STATE_PATH"))),
  };
}

interface ReadConfig {
  /** null if the configuration has no usable one. */
  readonly secret: string | null;
  /** Every line that `loadConfig` refuses, or none. */
  readonly configFaults: readonly string[];
  readonly configWarnings: readonly string[];
}

function readConfig(env: Environment): ReadConfig {
  try {
    const { project, warnings } = loadConfig(env);
    return { secret: project?.secrets.current.reveal() ?? null, configFaults: [], configWarnings: warnings };
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    return { secret: null, configFaults: error.problem.detail.split("\n"), configWarnings: [] };
  }
}

function configOf({ project, faults, warnings }: ProjectReading): ReadConfig {
  const secret = project?.settings.secrets.current.reveal() ?? null;
  return { secret, configFaults: faults, configWarnings: warnings };
}

/** The value of a variable, or its default if the value cannot be used. */
function lenient<Name extends keyof typeof variables>(env: Environment, name: Name) {
  const table = { [name]: variables[name] } as Pick<typeof variables, Name>;
  const { [name]: value } = readVariables(table, env, []);
  return value ?? readVariables(table, { ...env, [name]: "" }, [])[name];
}

function once<Value>(probe: () => Promise<Value>): () => Promise<Value> {
  let answer: Promise<Value> | null = null;
  return () => {
    answer ??= probe();
    return answer;
  };
}
