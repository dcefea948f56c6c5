import {
  chmodSync,
  constants,
  lchownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  type Stats,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { CommitStatus, Notify, Secrets } from "#config/project";
import type { Deployment, Start } from "#deployments/deployment";
import { branchOf } from "#deployments/push";
import type { Log } from "#log";
import { dockerSocketPath } from "#platform/docker/engine";
import {
  attempt,
  findProgram,
  isAllowed,
  kindOf,
  ownUid,
  readUser,
  type SystemUser,
  statOf,
  withGroup,
} from "#platform/files";
import { controllerOf, readForeignFile } from "#platform/foreign-files";
import { neverAsk, refusesOwner, runGit, withoutReplacements } from "#platform/git";
import { type Argv, type CommandEnding, hasSucceeded, isShortage, runCommand } from "#platform/run-command";
import { printable } from "#platform/terminal";
import { type Problem, ProblemError } from "#problems";
import {
  createRedactor,
  looksLikeSecretFile,
  type Redactor,
  readEnvFiles,
  readSecretFile,
  secretsInText,
  secretsInVariable,
} from "#redaction";

/** What a project's deploy script, and git in its repository, run with. */
export interface ProjectScript {
  readonly repoPath: string;
  /** The user that they run as; null: the user of this process. */
  readonly user: SystemUser | null;
  /** The environment of every child of the service. */
  readonly environment: Readonly<Record<string, string>>;
  /** A directory to make for their state; null: they use the one of the service. */
  readonly statePath: string | null;
  /** Creates the redactor of their output, with the secrets that are known now and `more`. */
  readonly redactor: (more?: readonly string[]) => Redactor;
  /** The commands that print more of its secrets, by their names. */
  readonly secretCommands: Readonly<Record<string, Argv>>;
  /** The same with these secrets, and without commands. */
  readonly withSecrets: (secrets: Environment) => ProjectScript;
}

/** What the checks of a script need. */
export type CheckedScript = Pick<ProjectScript, "repoPath" | "user" | "environment">;

export interface ScriptSources extends Omit<EnvironmentOptions, "user"> {
  readonly secrets: Secrets;
  readonly notify?: Notify;
  readonly commitStatus?: CommitStatus | null;
  readonly secretCommands?: Readonly<Record<string, Argv>>;
  /** Whether scripts run as the owner of the repository, if this process may become that user. Default: no. */
  readonly runsAsOwner?: boolean;
}

/** Creates a function that returns what they run with now: the repository can get another owner, and its files change. */
export function createProjectScript(sources: ScriptSources): () => ProjectScript {
  const { env, scriptSecrets, repoPath, runsAsOwner = false, scriptStatePath: statePath = null } = sources;
  const { secretCommands = {} } = sources;
  const withSecrets = (secrets: Environment) =>
    createProjectScript({
      ...sources,
      scriptSecrets: { ...scriptSecrets, ...secrets },
      secretCommands: {},
    })();
  return () => {
    const user = runsAsOwner ? ownerOf(repoPath, env.DOCKER_HOST || scriptSecrets?.DOCKER_HOST) : null;
    const environment = childEnvironment({ ...sources, user });
    const redactor = (more: readonly string[] = []) =>
      createRedactor([...findSecrets(sources, environment, user?.uid), ...more]);
    return { repoPath, statePath, user, environment, redactor, secretCommands, withSecrets };
  };
}

/**
 * The user that the scripts of a checkout run as: its owner, also as a member of the group of the Docker socket. A checkout of
 * root in a directory of another user is that user's, who could exchange it. It is looked up each time, because a checkout can
 * change hands.
 *
 * @param dockerHost the DOCKER_HOST of the scripts
 * @returns null if it is the user of this process, or if this process may not become another one
 */
export function ownerOf(repoPath: string, dockerHost?: string): SystemUser | null {
  const owner = controllerOf(repoPath);
  if (owner === null) return null;
  const user = readUser(owner.uid, owner.gid);
  const socketPath = dockerSocketPath(dockerHost);
  const socket = socketPath === null ? null : statOf(socketPath);
  return socket === null ? user : withGroup(user, socket.gid);
}

/** More of them would hold up the process: nobody has so many by hand. */
const mostSecretFiles = 100;

/**
 * The secrets that a deploy script may print: those of the settings, of its environment, of the repository's environment
 * files, of Docker and of git.
 *
 * @param namedBy the user who wrote the files of the repository, if that is not the one of this process
 */
function findSecrets(
  { secrets, notify, commitStatus, repoPath, scriptSecrets = {} }: ScriptSources,
  environment: Readonly<Record<string, string>>,
  namedBy: number | undefined,
): readonly string[] {
  const home = environment.HOME ?? "/";
  let leftFiles = mostSecretFiles;
  const inVariable = (name: string, value: string, by?: number) => [
    ...secretsInVariable(name, value),
    ...(looksLikeSecretFile(name) && leftFiles-- > 0 ? [readSecretFile(resolve(repoPath, value), by)] : []),
  ];
  const targets = notify?.targets ?? [];
  const settings = [
    secrets.current,
    secrets.previous,
    commitStatus?.token,
    ...targets.flatMap(({ url, key }) => [url, key]),
  ];
  const gitFiles = [
    join(repoPath, ".git/config"),
    environment.GIT_CONFIG_GLOBAL ?? join(home, ".gitconfig"),
    join(home, ".git-credentials"),
  ];
  return [
    ...settings.flatMap((secret) => (secret ? [secret.reveal()] : [])),
    ...Object.values(scriptSecrets),
    ...Object.entries(environment).flatMap(([name, value]) => inVariable(name, value)),
    ...readEnvFiles(repoPath).flatMap(({ name, value }) => inVariable(name, value, namedBy)),
    ...gitFiles.flatMap((path) => secretsInText(readSecretFile(path))),
    // Passwords that `docker login` stored.
    ...inVariable(
      "",
      readSecretFile(join(environment.DOCKER_CONFIG ?? join(home, ".docker"), "config.json")),
    ),
  ];
}

/**
 * Makes the directory in which the scripts of a project keep their state, if they have one, for their user alone: for the
 * lock and the good versions of its roll-outs.
 *
 * @throws Error with a `code` if the system refuses, or the directory belongs to another user
 */
export function makeScriptState({ statePath, user }: Pick<ProjectScript, "statePath" | "user">): void {
  if (statePath === null) return;
  const { uid, gid } = user ?? { uid: ownUid(), gid: process.getgid?.() ?? 0 };
  const parent = dirname(statePath);
  mkdirSync(parent, { recursive: true });
  // The users of other projects pass through it, each to a directory of their own.
  chmodSync(parent, 0o711);
  const isNew = mkdirSync(statePath, { recursive: true, mode: 0o700 }) !== undefined;
  if (isNew) lchownSync(statePath, uid, gid);
  const owner = statSync(statePath).uid;
  if (owner === uid) return;
  const reason = `${statePath} belongs to uid ${owner} and not to the owner of the checkout. Run: chown -R ${uid}:${gid} ${statePath}`;
  throw Object.assign(new Error(reason), { code: "other_owner" });
}

/** The variables of the service that a script may see; never a webhook secret. */
const passedNames = [
  "PATH HOME USER LOGNAME LANG TZ TMPDIR",
  "HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY http_proxy https_proxy no_proxy all_proxy",
  // So that `hotpush rollout` in the script uses the state directory of the service.
  "STATE_PATH XDG_STATE_HOME",
].flatMap((line) => line.split(" "));
const passedPrefixes = ["HOTPUSH_", "LC_", "DOCKER_", "COMPOSE_", "BUILDX_", "BUILDKIT_", "GIT_", "SSH_"];

/** Last in the script's PATH, so that it can say `hotpush rollout`. */
export const binDirectory = fileURLToPath(new URL("../../bin", import.meta.url));

interface EnvironmentOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** More names that may pass, from DEPLOY_ENV. */
  readonly deployEnv: readonly string[];
  readonly repoPath: string;
  /** What only the scripts of a project need. */
  readonly scriptSecrets?: Readonly<Record<string, string>>;
  /** The user that the children run as; null: the user of this process. */
  readonly user?: SystemUser | null;
  /** The state directory of `hotpush rollout` in the script; null: the one of the service. */
  readonly scriptStatePath?: string | null;
  /** The directory of orders to roll-outs. */
  readonly ordersPath?: string | null;
}

type Environment = Readonly<Record<string, string>>;

/** The environment of every child of the service: the variables of an allow-list, and settings that prevent prompts. */
export function childEnvironment(options: EnvironmentOptions): Environment {
  const { env, deployEnv, repoPath, scriptSecrets, user, scriptStatePath, ordersPath } = options;
  // Nobody can answer a prompt: a tool that would ask must fail at once instead of hanging.
  const unattended = { ...neverAsk(repoPath), DEBIAN_FRONTEND: "noninteractive" };
  const passed: Record<string, string> = { ...scriptSecrets, ...unattended };
  for (const name of Object.keys(passed)) if (name.startsWith("WEBHOOK_SECRET")) delete passed[name];
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && isPassed(name, deployEnv)) passed[name] = value;
  }
  const path = passed.PATH ?? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  if (user) Object.assign(passed, ofUser(user, passed));
  if (scriptStatePath) passed.STATE_PATH = scriptStatePath;
  if (ordersPath) passed.HOTPUSH_ORDERS = ordersPath;
  return { ...passed, PATH: `${path}:${binDirectory}`, REPO_PATH: repoPath };
}

/** What differs for another user than that of this process: nothing is left that leads into this one's directories. */
function ofUser(user: SystemUser, passed: Environment): Environment {
  const name = user.name ?? String(user.uid);
  return {
    HOME: user.home,
    USER: name,
    LOGNAME: name,
    XDG_STATE_HOME: join(user.home, ".local/state"),
    STATE_PATH: join(user.home, ".local/state/hotpush"),
    ...(passed.BUILDX_CONFIG && { BUILDX_CONFIG: join(deployLogDirectory(user), "buildx") }),
  };
}

/** The environment of a deploy script: that of every child, and the deployment. */
export function scriptEnvironment(
  { environment, user }: { readonly environment: Environment; readonly user: SystemUser | null },
  { id, ref, commit, trigger }: Deployment,
): Environment {
  return {
    // The commit that was decided about is the one that git has under this id, and not a replacement for it.
    ...withoutReplacements(environment),
    DEPLOY_ID: String(id),
    DEPLOY_REF: ref,
    DEPLOY_BRANCH: branchOf(ref),
    DEPLOY_COMMIT: commit,
    DEPLOY_TRIGGER: trigger,
    DEPLOY_LOG: join(deployLogDirectory(user), `deploy-${id}.log`),
  };
}

function isPassed(name: string, deployEnv: readonly string[]): boolean {
  if (name.startsWith("WEBHOOK_SECRET")) return false;
  const isNamed = [...passedNames, ...deployEnv].includes(name);
  return isNamed || passedPrefixes.some((prefix) => name.startsWith(prefix));
}

/**
 * What is wrong with the directory for the scripts' own logs, or null. It has a guessable name in a directory where every user may write:
 * a user who made it earlier could read the logs, or redirect them by a link. In place of such a one, another one is made.
 */
export function checkDeployLogDirectory(user: SystemUser | null): Problem | null {
  const uid = user?.uid ?? ownUid();
  const directory = deployLogDirectory(user);
  if (attempt(() => makeOwnDirectory(directory, user), null) !== null) return null;
  const made = attempt(() => mkdtempSync(join(tmpdir(), `hotpush-${uid}-`)), null);
  if (made !== null) {
    if (user !== null) lchownSync(made, user.uid, user.gid);
    logDirectories.set(uid, made);
    return null;
  }
  const detail = `No directory for the log of deploy.sh can be made in ${tmpdir()}. Set TMPDIR to a directory of your own.`;
  return { code: "temporary_directory_unusable", detail };
}

/** Makes it, unless it is there and only this user may write to it. @returns null if it is something else. @throws the system's error */
function makeOwnDirectory(directory: string, user: SystemUser | null): Stats | null {
  const made = mkdirSync(directory, { recursive: true, mode: 0o700 });
  if (user !== null && made !== undefined) lchownSync(directory, user.uid, user.gid);
  const stats = lstatSync(directory);
  const isOwn = stats.isDirectory() && stats.uid === (user?.uid ?? ownUid()) && (stats.mode & 0o022) === 0;
  return isOwn ? stats : null;
}

/** By uid, those that have another name than the usual one. */
const logDirectories = new Map<number, string>();

/** The directory in which the scripts of a user write logs of their own; null: of the user of this process. */
export function deployLogDirectory(user: SystemUser | null): string {
  const uid = user?.uid ?? ownUid();
  return logDirectories.get(uid) ?? join(tmpdir(), `hotpush-${uid}`);
}

/**
 * Checks whether `REPO_PATH/deploy.sh` can start. The system's own errors mislead: it reports "no such file or directory"
 * for a missing directory, a missing interpreter and Windows line endings alike.
 *
 * @returns what is wrong and how to fix it, or null
 */
export async function checkScript(project: CheckedScript): Promise<Problem | null> {
  const { repoPath, environment: env, user } = project;
  const script = join(repoPath, "deploy.sh");
  return (
    checkRepository(repoPath) ??
    checkFile(script) ??
    checkInterpreterLine(script, env.PATH ?? "") ??
    (await checkOwner(project)) ??
    (await checkOwnership(project)) ??
    checkDeployLogDirectory(user)
  );
}

/** Logs what would keep the deploy script from starting, if anything. */
export async function logScriptFault(project: CheckedScript, log: Log): Promise<void> {
  const problem = await checkScript(project);
  if (problem)
    log.error({ event: "script.unusable", code: problem.code }, `No push can be deployed: ${problem.detail}`);
}

/** What prevents a program from running in the repository directory, or null. */
export function checkRepository(repoPath: string): Problem | null {
  const entry = kindOf(repoPath);
  if (entry === "directory" && isAllowed(repoPath, constants.R_OK | constants.X_OK)) return null;
  if (entry === "directory" || entry === "inaccessible") {
    const detail = `This user (uid ${ownUid()}) may not enter ${repoPath}. Run: chown -R ${ownUid()} ${repoPath}`;
    return { code: "repository_not_accessible", detail };
  }
  const detail = `REPO_PATH is ${repoPath}, which is no directory. Clone the repository there, mount it, or set REPO_PATH.`;
  return { code: "repository_missing", detail };
}

function checkFile(script: string): Problem | null {
  const entry = kindOf(script);
  if (entry === "inaccessible" || (entry === "file" && !isAllowed(script, constants.R_OK))) {
    const detail = `This user (uid ${ownUid()}) may not read ${script}. Run: chmod a+rx ${script}`;
    return { code: "script_not_readable", detail };
  }
  if (entry !== "file") {
    const what = entry === "missing" ? "does not exist, or is a link to nothing" : "is no file";
    const detail = `${script} ${what}. Copy examples/deploy.sh there, run: chmod +x deploy.sh, and commit it.`;
    return { code: "script_missing", detail };
  }
  if (isAllowed(script, constants.X_OK)) return null;
  const detail = `${script} is not executable, or its file system is mounted noexec. Run: git update-index --chmod=+x deploy.sh, commit and push; here: chmod +x ${script}`;
  return { code: "script_not_executable", detail };
}

/** The longest `#!` line that Linux reads. */
const shebangBytes = 256;

/** What is wrong with the first line of `script` or with the program that it names, or null. */
function checkInterpreterLine(script: string, searchPath: string): Problem | null {
  const line = firstLineOf(script);
  if (line === null) return null;
  const [, interpreter = "", rest = ""] = /^#![ \t]*([^ \t\r]+)(.*)/s.exec(line) ?? [];
  if (interpreter === "") {
    const detail = `${script} does not begin with #! and a program to run it. Make its first line: #!/usr/bin/env bash`;
    return { code: "script_without_interpreter", detail };
  }
  if (line.endsWith("\r")) {
    const detail = `${script} has Windows line endings. Run: sed -i 's/\\r$//' ${script}, add the line "deploy.sh text eol=lf" to .gitattributes, and commit both.`;
    return { code: "script_crlf", detail };
  }
  const missing = (program: string, why: string): Problem => {
    const detail = `The first line of ${script} names ${program}, ${why}. Install it, or name another program there.`;
    return { code: "interpreter_missing", detail };
  };
  if (kindOf(interpreter) !== "file" || !isAllowed(interpreter, constants.X_OK))
    return missing(interpreter, "which does not exist or cannot be run");
  // `#!/usr/bin/env bash` finds bash in the PATH.
  const words = interpreter.endsWith("/env") ? rest.split(/[ \t]+/) : [];
  const program = words.find((word) => word !== "" && !word.startsWith("-") && !word.includes("="));
  if (program === undefined || program.includes("/") || findProgram(program, searchPath) !== null)
    return null;
  return missing(program, "which is not in the PATH");
}

/** The first line of `script`, as far as Linux reads a `#!` line; null if this process must not read it. */
function firstLineOf(script: string): string | null {
  const options = { mostBytes: shebangBytes, isCut: true };
  // Its owner may have a link there to what only that user reaches.
  return attempt(() => readForeignFile(script, options).toString().split("\n")[0] ?? "", null);
}

/** What keeps a script from running as the owner of its repository, or null. */
async function checkOwner({ user, repoPath, environment: env }: CheckedScript): Promise<Problem | null> {
  if (user === null) return null;
  const unusable = (detail: string): Problem => ({ code: "owner_unusable", detail });
  const { uid, name } = user;
  if (name === null)
    return unusable(
      `${repoPath} belongs to uid ${uid}, and /etc/passwd has no such user. deploy.sh runs as the owner of the checkout, and ssh refuses a user without a name. A container keeps the /etc/passwd that it started with. If the user is new, run hotpush init in the checkout again, or in the directory of the server, /etc/hotpush: docker compose up -d --force-recreate run. If not, give the checkout to a user of this machine with chown -R.`,
    );
  const script = join(repoPath, "deploy.sh");
  // Root may do everything, so only a process of the user shows what the user may do.
  const argv = ["test", "-r", script, "-a", "-x", script] as const;
  const ending = await runCommand({ argv, user, env, timeoutMs: testTimeoutMs });
  const isMissing = ending.kind === "not_found";
  const refusal = isMissing ? "the program setpriv of util-linux is missing" : ending.lastLines.at(-1);
  const owner = `${name} (uid ${uid}), who owns ${repoPath}`;
  if (refusal !== undefined)
    return unusable(
      `No program can be started as ${owner}: ${refusal}. Give Hotpush the capabilities SETUID and SETGID, or run it as that user.`,
    );
  if (hasSucceeded(ending)) return null;
  const detail = `deploy.sh runs as ${owner} but may not read and execute ${script}. To find what keeps that user out: namei -l ${script}`;
  return { code: "script_not_executable", detail };
}

const testTimeoutMs = 10_000;

/**
 * Git does nothing in a repository of another user, unless its settings trust that repository. It is asked only if the
 * owner is another user.
 */
export async function checkOwnership({
  repoPath,
  environment: env,
  user,
}: CheckedScript): Promise<Problem | null> {
  const uid = user?.uid ?? ownUid();
  const owner = lstatSync(join(repoPath, ".git"), { throwIfNoEntry: false })?.uid;
  if (owner === undefined || (owner === uid && lstatSync(repoPath).uid === uid)) return null;
  // A machine that cannot start git now says nothing about the owner: starting the script fails by itself then.
  const ending = await runGit(repoPath, ["rev-parse", "--git-dir"], { env, user }).catch(() => null);
  if (ending?.kind !== "exited" || !refusesOwner(ending)) return null;
  const detail = `${repoPath} belongs to the user with uid ${owner}, so git refuses to use it as this user (uid ${uid}). Run: chown -R ${uid} ${repoPath}; or, if you trust that user, run: git config --global --add safe.directory ${repoPath}`;
  return { code: "repository_dubious_ownership", detail };
}

/**
 * Checks that the program is installed that a safe run of a script needs. It only looks for it: a process would slow down
 * every start.
 *
 * @throws ProblemError `tool_missing`
 */
export function checkTools(): void {
  if (findProgram("flock", process.env.PATH ?? "") !== null) return;
  const detail = "flock is not installed. Install the package util-linux.";
  throw new ProblemError({ code: "tool_missing", detail });
}

/** Linux refuses a variable of 128 KiB. */
const longestValue = 64 * 1024;

type Printed = { readonly kind: "printed"; readonly values: Readonly<Record<string, string>> };

/**
 * Runs the commands of a project's secrets file, one after the other, as the user of its script. They get the environment of
 * every child and no input: nothing of a push, neither its names nor a file of the checkout by a relative path, reaches them.
 *
 * @returns what each printed, without the last line's end; or why the script cannot start
 */
export async function runSecretCommands(
  { secretCommands, environment: env, user, withSecrets }: ProjectScript,
  signal: AbortSignal,
  timeoutMs: number = 20_000,
): Promise<Printed | Extract<Start, { kind: "refused" | "wait" }>> {
  const values: Record<string, string> = {};
  for (const [name, argv] of Object.entries(secretCommands)) {
    const running = runCommand({ argv, cwd: "/", env, user, timeoutMs, signal });
    const ending = await running.catch((error: unknown) => notStarted(error));
    if (ending.kind === "aborted") return { kind: "wait", reason: `${argv[0]} was stopped.` };
    const fault = faultOf(ending, timeoutMs);
    if (fault !== null || ending.kind !== "exited") {
      const redactor = withSecrets(values).redactor();
      const what = printable(`${argv[0]} ${redactor.text(fault ?? ending.kind)}`);
      const detail = `${name} of the secrets file has no value: ${what}. Nothing was run. When the command works as the owner of the checkout, deploy again: hotpush deploy`;
      return { kind: "refused", problem: { code: "secret_unavailable", detail } };
    }
    values[name] = ending.output;
  }
  return { kind: "printed", values };
}

/** Of a program that may not be executed; a shortage of the machine passes. */
function notStarted(error: unknown): CommandEnding {
  if (isShortage(error)) throw error;
  return { kind: "exited", code: 126, output: "", lastLines: [(error as Error).message] };
}

/** The end of a sentence; null if there is a value. What it printed to its standard output may be part of one. */
function faultOf(ending: CommandEnding, timeoutMs: number): string | null {
  if (ending.kind === "not_found") return "is not installed";
  if (ending.kind !== "exited") return `did not end within ${timeoutMs / 1_000} s`;
  const { code, output, lastLines } = ending;
  const printed = output.split("\n");
  const complaint = lastLines.filter((line) => line.trim() !== "" && !printed.includes(line)).at(-1);
  if (code !== 0) return `ended with exit code ${code}: ${complaint ?? "it gave no reason"}`;
  if (output === "") return "printed nothing";
  const isUsable = !output.includes("\0") && Buffer.byteLength(output) <= longestValue;
  return isUsable ? null : "printed what no variable can hold: a zero byte, or more than 64 KiB";
}
