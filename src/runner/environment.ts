import { fileURLToPath } from "node:url";
import type { Deployment } from "../deployments/deployment.ts";

/** What of the service's own environment a script may see; a webhook secret is none of it. */
const passedNames = new Set([
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "LANG",
  "TZ",
  "TMPDIR",
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "NO_PROXY",
  "ALL_PROXY",
  "http_proxy",
  "https_proxy",
  "no_proxy",
  "all_proxy",
  // Where `hotpush rollout` keeps what it knows, so that it is what the service would call its own.
  "STATE_PATH",
  "XDG_STATE_HOME",
]);
const passedPrefixes = ["HOTPUSH_", "LC_", "DOCKER_", "COMPOSE_", "BUILDX_", "BUILDKIT_", "GIT_", "SSH_"];

/** Last in the script's PATH, so that it can say `hotpush rollout`. */
export const binDirectory = fileURLToPath(new URL("../../bin", import.meta.url));

/** Nobody is there to answer: a tool that would ask has to fail at once instead of hanging. */
const neverAsk = {
  GIT_TERMINAL_PROMPT: "0",
  GIT_ASKPASS: "/bin/false",
  SSH_ASKPASS: "/bin/false",
  GIT_SSH_COMMAND: "ssh -o BatchMode=yes",
  DEBIAN_FRONTEND: "noninteractive",
} as const;

export interface EnvironmentOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Further names that may pass, from DEPLOY_ENV. */
  readonly deployEnv: readonly string[];
  readonly repoPath: string;
}

type Environment = Record<string, string>;

/** The part of the environment that every child of the service gets: an allow-list, and nothing that could ask. */
export function childEnvironment({ env, deployEnv, repoPath }: EnvironmentOptions): Environment {
  const passed: Environment = { ...neverAsk };
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && isPassed(name, deployEnv)) passed[name] = value;
  }
  const path = passed.PATH ?? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  return { ...passed, PATH: `${path}:${binDirectory}`, REPO_PATH: repoPath };
}

/** What a deploy script gets: that, and what it is to deploy. */
export function scriptEnvironment(
  options: EnvironmentOptions,
  { id, ref, commit, trigger }: Deployment,
  logPath: string,
): Environment {
  return {
    ...childEnvironment(options),
    DEPLOY_ID: String(id),
    DEPLOY_REF: ref,
    DEPLOY_BRANCH: ref.replace(/^refs\/heads\//, ""),
    DEPLOY_COMMIT: commit,
    DEPLOY_TRIGGER: trigger,
    DEPLOY_LOG: logPath,
  };
}

/** The same, for a script that has to deploy exactly `commit`, whose signature was verified. */
export function exactEnvironment(environment: Environment, commit: string): Environment {
  // A replaced object would be another commit under the same name.
  return { ...environment, DEPLOY_COMMIT: commit, DEPLOY_EXACT: "1", GIT_NO_REPLACE_OBJECTS: "1" };
}

function isPassed(name: string, deployEnv: readonly string[]): boolean {
  if (name.startsWith("WEBHOOK_SECRET")) return false;
  return (
    passedNames.has(name) ||
    deployEnv.includes(name) ||
    passedPrefixes.some((prefix) => name.startsWith(prefix))
  );
}
