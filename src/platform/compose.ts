import { createHash } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { ProblemError } from "#problems";
import { createRedactor, readEnvFiles, secretsInVariable } from "#redaction";
import { causeIn } from "./command-cause.ts";
import { isInContainer } from "./docker/engine.ts";
import { withDotenv } from "./env-file.ts";
import { attempt, type SystemUser } from "./files.ts";
import { readForeignFile } from "./foreign-files.ts";
import { type Argv, type CommandEnding, hasSucceeded, outputOf, runCommand } from "./run-command.ts";

/** The project of a compose command, and the conditions it runs under. */
export interface ComposeOptions {
  readonly target: ComposeTarget;
  readonly env: NodeJS.ProcessEnv;
  /** The user to run compose as, whose plugins it may be; null or absent: the user of this process. */
  readonly user?: SystemUser | null;
  readonly signal?: AbortSignal | undefined;
  /** A lock that the command holds too, so that the lock lasts until the command has ended. */
  readonly lockDescriptor?: number;
}

/** What one compose command gets beside its arguments. */
export interface ComposeRun {
  readonly timeoutMs: number;
  readonly input?: string | undefined;
  readonly onLine?: (line: string) => void;
  /** The most bytes of standard output that the caller reads; by default it reads none. */
  readonly maxOutputBytes?: number;
}

/** A model of fifty services takes a tenth of it; inline configs are in it, too. */
const maxModelBytes = 16 * 1024 ** 2;

/**
 * Runs `argv` in the project's directory and lets it hold the lock. Lines are given to `onLine` and in `lastLines`
 * with the project's secrets redacted; `output` is as compose wrote it.
 *
 * @throws ProblemError `compose_missing`, `repository_missing`, or `rollout_interrupted` if `signal` is aborted
 */
export async function runCompose(
  { env, user = null, signal, lockDescriptor, target }: ComposeOptions,
  argv: Argv,
  { timeoutMs, input, onLine, maxOutputBytes = 0 }: ComposeRun,
): Promise<CommandEnding> {
  const redact = redactorOf(env, target.projectDirectory);
  const ending = await runCommand({
    argv,
    cwd: target.projectDirectory,
    // PWD keeps compose from resolving the link that may stand at this path (locate-project.ts). A file that
    // names the repository by REPO_PATH means its path on the host. Attestations hold the time of the build:
    // with them, every build would look like a new version.
    env: {
      BUILDX_NO_DEFAULT_ATTESTATIONS: "1",
      ...env,
      // The engine at DOCKER_HOST, which is asked here too, whatever context Docker's own settings name.
      DOCKER_CONTEXT: "default",
      PWD: target.projectDirectory,
      ...(env.REPO_PATH === undefined ? {} : { REPO_PATH: target.projectDirectory }),
    },
    user,
    input,
    timeoutMs,
    signal,
    heldDescriptor: lockDescriptor,
    onLine: onLine && ((line) => onLine(redact(line))),
    maxOutputBytes,
  });
  if (ending.kind === "not_found") {
    // The system reports a missing directory with the same error as a missing program.
    const path = target.projectDirectory;
    const noProgram = "There is no docker program here. Install docker-cli and docker compose.";
    const noPath = `${path} does not exist. Name the directory of the compose file: --directory, or REPO_PATH.`;
    if (existsSync(path)) throw new ProblemError({ code: "compose_missing", detail: noProgram });
    throw new ProblemError({ code: "repository_missing", detail: noPath });
  }
  if (ending.kind === "aborted") {
    throw new ProblemError({ code: "rollout_interrupted", detail: "The roll-out was asked to stop." });
  }
  return { ...ending, lastLines: ending.lastLines.map(redact) };
}

function redactorOf(env: NodeJS.ProcessEnv, directory: string): (text: string) => string {
  const given = Object.entries(env).map(([name, value = ""]) => ({ name, value }));
  const secrets = [...given, ...readEnvFiles(directory)].flatMap(({ name, value }) =>
    secretsInVariable(name, value),
  );
  return createRedactor(secrets).text;
}

/** The error for containers of `service` that compose did not start. */
export function startFailure(service: string, step: string, ending: CommandEnding): ProblemError {
  return new ProblemError({
    code: "container_start_failed",
    detail: `${service} was not started: ${complaintOf(step, ending)}.`,
    evidence: ending.lastLines,
  });
}

/** Describes the ending of a command that did not succeed: its cause, without a period at its end. */
export function complaintOf(step: string, ending: CommandEnding): string {
  if (ending.kind === "too_long") return `docker compose printed too much (${step}) and was killed`;
  if (ending.kind !== "exited") return `docker compose did not end in time (${step}) and was killed`;
  return causeIn(ending.lastLines) ?? `docker compose ended with exit code ${ending.code} (${step})`;
}

const readTimeoutMs = 60_000;

/** The version of compose, such as `2.24.0`; null if it is not installed or does not answer in time. */
export async function composeVersion(
  { env, user = null }: Pick<ComposeOptions, "env" | "user">,
  timeoutMs: number,
): Promise<string | null> {
  const output = await outputOf(["docker", "compose", "version", "--short"], { env, user, timeoutMs });
  return output?.replace(/^v/, "") ?? null;
}

/**
 * Asks compose for the project with all variables resolved.
 *
 * @param onUnset gets the name of each variable that is not set, and that compose takes for blank
 * @throws ProblemError `compose_invalid` with what compose says
 */
export async function loadModel(
  options: ComposeOptions,
  onUnset?: (variable: string) => void,
): Promise<ComposeModel> {
  const argv: Argv = [...composeCommand(options.target), "config", "--format", "json"];
  const unset = new Set<string>();
  const onLine = (line: string) => {
    const [, name] = /level=warning msg="The \\"(\w+)\\" variable is not set/.exec(line) ?? [];
    if (name !== undefined) unset.add(name);
  };
  const text = await askCompose(options, argv, onUnset && { onLine });
  for (const name of unset) onUnset?.(name);
  return JSON.parse(text) as ComposeModel;
}

/**
 * Asks compose for the names of all images that the project may run. The model leaves out services in inactive
 * profiles, but a cron job may run them at any time (`docker compose --profile backup run backup`).
 *
 * @throws ProblemError `compose_invalid` with what compose says
 */
export async function loadImageNames(options: ComposeOptions): Promise<readonly string[]> {
  const argv: Argv = [...composeCommand(options.target), "--profile", "*", "config", "--images"];
  // From 5.0 on, compose wants the env files of inactive services too, unless it is told not to.
  const names = await askCompose(options, argv).catch((error: unknown) =>
    askCompose(options, [...argv, "--no-env-resolution"]).catch(() => Promise.reject(error)),
  );
  return [...new Set(names.split("\n").filter(Boolean))];
}

/**
 * Runs a compose command that reads the project from its files.
 *
 * @returns its standard output
 * @throws ProblemError `compose_invalid` with what compose says
 */
async function askCompose(
  options: ComposeOptions,
  argv: Argv,
  more: Pick<ComposeRun, "onLine"> = {},
): Promise<string> {
  const run = { timeoutMs: readTimeoutMs, maxOutputBytes: maxModelBytes, ...more };
  const ending = await runCompose(options, argv, run);
  if (hasSucceeded(ending)) return ending.output;
  const { projectDirectory } = options.target;
  const hint = lostServiceHint(ending.lastLines.join(" "), projectDirectory);
  throw new ProblemError({
    code: "compose_invalid",
    detail: `The compose file in ${projectDirectory} cannot be read: ${complaintOf("config", ending)}.${hint}`,
    evidence: [...ending.lastLines, hiddenFileHint(ending.lastLines.join(" "))].filter(Boolean),
  });
}

/** What a person should know if our override names a service that a push has removed or renamed. "": nothing. */
function lostServiceHint(said: string, directory: string): string {
  const [, name] = /service "?([\w.-]+?)"? has neither an image nor a build context/.exec(said) ?? [];
  const isOurs = attempt(() => readdirSync(directory), []).some(
    (file) => /^compose\..*\.yaml$/.test(file) && isWrittenByInit(join(directory, file)),
  );
  if (name === undefined || !isOurs) return "";
  return ` The file of Hotpush in the checkout still names ${name}. If a push has removed or renamed it, run in the checkout: hotpush init`;
}

/** What a person should know if a file is missing here: the machine may have it nevertheless. "": nothing. */
export function hiddenFileHint(said: string): string {
  if (!isInContainer() || !/not found|no such file/.test(said)) return "";
  return "Hotpush runs in a container, which has only the directories of this machine that are mounted. If the machine has the file, run in the checkout: hotpush init";
}

/**
 * Asks the registries which digests these images have now, with the logins of the user that compose runs as. The engine asks, as
 * for a pull.
 *
 * @returns each name with its digest: `ghcr.io/team/app:main@sha256:…`
 * @throws ProblemError `image_pull_failed` with what the registry says
 */
export async function resolveDigests(
  options: ComposeOptions,
  images: readonly string[],
): Promise<readonly string[]> {
  const services = Object.fromEntries(images.map((image, index) => [`image-${index}`, { image }]));
  const input = JSON.stringify({ name: "images", services });
  const argv: Argv = ["docker", "compose", "--file", "-", "config", "--resolve-image-digests"];
  const command: Argv = [...argv, "--format", "json"];
  const run = { timeoutMs: readTimeoutMs, input, maxOutputBytes: maxModelBytes };
  const ending = await runCompose(options, command, run);
  if (hasSucceeded(ending)) {
    const model = JSON.parse(ending.output) as ComposeModel;
    return images.map((image, index) => `${image}@${model.services[`image-${index}`]?.image?.split("@")[1]}`);
  }
  const isLate = ending.kind === "timed_out";
  const said = isLate ? `no answer within ${readTimeoutMs / 1_000} s` : complaintOf("config", ending);
  const detail = `A registry does not say which image it has: ${said}. Is the name in the compose file right, and pushed? For a private registry run, as the owner of the repository: docker login. A credential helper has to be in Hotpush's container too. Nothing was pulled.`;
  throw new ProblemError({ code: "image_pull_failed", detail });
}

/** Keys that the hash of a service leaves out, in compose 2.33, in 2.29.3 and without dependencies before, and before. */
const leftOut = [["depends_on", "profiles"], ["depends_on"], []];
/** A short bind mount of compose 2 has `create_host_path: true`, which compose 5 leaves out. */
const asIs = (_: string, value: unknown) => value;
const spellings = [
  asIs,
  (key: string, value: unknown) => (key === "create_host_path" ? undefined : value),
  (key: string, value: unknown) =>
    key === "bind" && value instanceof Object ? { ...value, create_host_path: true } : value,
];

/**
 * Hashes a service of the model as the versions of compose do, for the `config-hash` label of its containers. `config --hash` gives
 * only that of one version, and not what `up` makes of a service that is bound to another.
 *
 * @param containerIds the container of each other service, which is hashed where the file names the service
 */
export function serviceHashes(
  service: ComposeService,
  containerIds: ReadonlyMap<string, string>,
): ReadonlySet<string> {
  const bound = (mode: string) =>
    mode.replace(/^service:(.*)/, (text, name) => `container:${containerIds.get(name) ?? text}`);
  const hashedValue = ([key, value]: [string, unknown]) => {
    if (key === "deploy") return { ...service.deploy, replicas: undefined };
    if (key === "volumes_from")
      return service.volumes_from?.map((from) => {
        const [name = "", container] = from.split(":");
        return name === "container" ? container : (containerIds.get(name) ?? from);
      });
    return ["network_mode", "ipc", "pid"].includes(key) ? bound(String(value)) : value;
  };
  const hashes = leftOut.flatMap((keys) => {
    const isHashed = ([key]: [string, unknown]) => ![...keys, "build", "pull_policy", "scale"].includes(key);
    const parts = Object.entries(service).filter(isHashed);
    const hashed = Object.fromEntries(parts.map((part) => [part[0], hashedValue(part)]));
    return spellings.map((spelling) => composeHash(hashed, spelling));
  });
  return new Set(hashes);
}

/** Before the keys of an object, so that they stay in their order: JavaScript moves numbers to the front. */
const keyMark = "\ue000";

/** Go writes a map with its keys in order. Only a map has a number as a key. */
function inGoOrder(value: unknown): unknown {
  if (
    !(value instanceof Object) ||
    Array.isArray(value) ||
    !Object.keys(value).some((key) => /^\d+$/.test(key))
  )
    return value;
  const entries = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [keyMark + key, inner]));
}

/** Hashes a part of the model as compose does: over its own JSON, in which Go escapes some characters. */
export function composeHash(part: object, spelling: (typeof spellings)[number] = asIs): string {
  const text = JSON.stringify(part, (key, value) => inGoOrder(spelling(key, value)));
  const escaped = plainText(text.replaceAll(`"${keyMark}`, '"')).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return createHash("sha256").update(escaped).digest("hex");
}

/** Compose keeps a `$` apart from its variables by doubling it, also in the model that it prints. */
export function plainText(text: string): string {
  return text.replaceAll("$$", () => "$");
}

/** Between the project and the service in the name of an image or a container, as for compose: COMPOSE_COMPATIBILITY changes it. */
export function nameSeparator({ env, target }: Pick<ComposeOptions, "env" | "target">): "-" | "_" {
  const { COMPOSE_COMPATIBILITY: value = "" } = withDotenv(env, target.projectDirectory);
  return /^(?:y|1|t|true)$/i.test(value.trim()) ? "_" : "-";
}

/** Which compose project a command is about. Without files, compose looks for its own in the project's directory. */
export interface ComposeTarget {
  readonly projectDirectory: string;
  readonly files: readonly string[];
  /** Set if it is not the name that compose derives from the files and the directory. */
  readonly projectName?: string;
}

/** With the images that are here: `pull_policy` would take their names from those that a roll back or a pin has chosen. */
const upAsPrepared = ["up", "--detach", "--no-deps", "--no-build", "--pull", "never"];

/**
 * Starts more containers of services and leaves the present ones as they are (see rollout/project.ts).
 *
 * @param providers of these services: compose gives them what those say, but only if they are named too
 */
export function scaleUpCommand(
  target: ComposeTarget,
  scales: readonly { readonly service: string; readonly count: number }[],
  providers: readonly string[] = [],
): Argv {
  const options = scales.flatMap(({ service, count }) => ["--scale", `${service}=${count}`]);
  const services = scales.map(({ service }) => service);
  return [...composeCommand(target), ...upAsPrepared, "--no-recreate", ...options, ...services, ...providers];
}

/** Replaces the containers of one service. The service is down in between. */
export function recreateCommand(
  target: ComposeTarget,
  service: string,
  providers: readonly string[] = [],
): Argv {
  return [...composeCommand(target), ...upAsPrepared, service, ...providers];
}

/** The beginning of each command about a project. */
export function composeCommand(target: ComposeTarget): Argv {
  const name = target.projectName === undefined ? [] : ["--project-name", target.projectName];
  const files = target.files.flatMap((file) => ["--file", file]);
  const directory = ["--project-directory", target.projectDirectory];
  return ["docker", "compose", "--progress", "plain", ...directory, ...name, ...files];
}

type Environment = Readonly<Record<string, string | undefined>>;

/** In the order in which compose looks for them: `DefaultFileNames` in compose-go, cli/options.go. */
export const composeFileNames = ["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"];

/** The first of them is used beside that file: `DefaultOverrideFileNames` there. */
export const composeOverrideNames = [
  "compose.override.yml",
  "compose.override.yaml",
  "docker-compose.override.yml",
  "docker-compose.override.yaml",
];

/** The first words of the compose files that `init` writes into checkouts. */
export const ownHeading = "# Written by `hotpush init`";

/** Reports whether `init` wrote the compose file at `path`, and not the project. */
export function isWrittenByInit(path: string): boolean {
  return attempt(() => readForeignFile(path, { mostBytes: 1024 ** 2 }).toString(), "").startsWith(ownHeading);
}

/** The files that COMPOSE_FILE names, as written there; empty if it is not set. */
export function namedFiles(env: Environment): readonly string[] {
  return (env.COMPOSE_FILE ?? "").split(separatorOf(env)).filter(Boolean);
}

/** The value of COMPOSE_FILE that names `files`. */
export function namingFiles(files: readonly string[], env: Environment): string {
  return files.join(separatorOf(env));
}

/** https://docs.docker.com/compose/how-tos/environment-variables/envvars/#compose_path_separator */
function separatorOf({ COMPOSE_PATH_SEPARATOR }: Environment): string {
  return COMPOSE_PATH_SEPARATOR || delimiter;
}

/** The first version in which `!reset` removes a list that another file gives. `start_interval` came with 2.24.0. */
export const neededCompose = "2.24.4";

/** Compares versions such as `2.24.0` and `2.9.1-desktop.1` number by number: negative if `one` is older. */
export function compareVersions(one: string, other: string): number {
  return one.localeCompare(other, "en", { numeric: true });
}

/**
 * The part of `docker compose config --format json` that Hotpush reads, with the settings that only Swarm reads. Compose
 * has validated it; absent keys stay absent.
 */
export interface ComposeModel {
  readonly name: string;
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly volumes?: Readonly<Record<string, ComposeResource>>;
  readonly networks?: Readonly<Record<string, ComposeResource>>;
  /** One of three each: the path of a file, the content itself, or the name of a variable. */
  readonly configs?: Readonly<Record<string, Partial<Record<"file" | "content" | "environment", string>>>>;
  readonly secrets?: ComposeModel["configs"];
  readonly "x-hotpush"?: { readonly engine?: unknown; readonly stack?: unknown } | null;
}

/** A network or a volume, and its name in the engine. */
export interface ComposeResource {
  readonly name: string;
  readonly external?: boolean;
  readonly driver?: string;
  readonly driver_opts?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly internal?: boolean;
}

export interface ComposeService {
  readonly image?: string;
  readonly build?: { readonly context?: string; readonly platforms?: readonly string[] };
  readonly pull_policy?: string;
  readonly container_name?: string;
  readonly depends_on?: Readonly<Record<string, { readonly condition?: string }>>;
  readonly deploy?: {
    readonly mode?: string;
    readonly replicas?: number | string;
    readonly restart_policy?: { readonly condition?: string };
    readonly labels?: Readonly<Record<string, string>>;
    readonly update_config?: ComposeUpdateConfig;
    readonly rollback_config?: ComposeUpdateConfig;
  };
  readonly scale?: number;
  readonly healthcheck?: ComposeHealthcheck;
  readonly environment?: Readonly<Record<string, string | null>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly restart?: string;
  readonly stop_grace_period?: string;
  readonly network_mode?: string;
  readonly ipc?: string;
  readonly pid?: string;
  readonly links?: readonly string[];
  readonly networks?: Readonly<Record<string, ComposeEndpoint | null>>;
  readonly ports?: readonly ComposePort[];
  readonly expose?: readonly string[];
  readonly volumes?: readonly ComposeVolume[];
  readonly volumes_from?: readonly string[];
  readonly configs?: readonly { readonly source: string }[];
  readonly secrets?: readonly { readonly source: string }[];
  /** A program that compose runs instead of a container. */
  readonly provider?: unknown;
  readonly pre_start?: readonly { readonly image?: string }[];
  readonly post_start?: readonly ComposeHook[];
  readonly pre_stop?: readonly ComposeHook[];
}

interface ComposeEndpoint {
  readonly aliases?: readonly string[];
  readonly ipv4_address?: string;
  readonly ipv6_address?: string;
}

/** A command that compose runs in a container. In the model, each `$` of its texts is written `$$`. */
export interface ComposeHook {
  readonly command: readonly string[];
  readonly user?: string;
  readonly privileged?: boolean;
  readonly working_dir?: string;
  readonly environment?: Readonly<Record<string, string | null>>;
}

/** How Swarm replaces the tasks of a service. */
export interface ComposeUpdateConfig {
  readonly delay?: string;
  readonly monitor?: string;
  readonly order?: "start-first" | "stop-first";
  readonly failure_action?: string;
}

export interface ComposeHealthcheck {
  readonly test?: string | readonly string[];
  readonly disable?: boolean;
  readonly interval?: string;
  readonly retries?: number;
  readonly start_period?: string;
  readonly timeout?: string;
}

export interface ComposePort {
  readonly published?: string;
  readonly target?: number;
  /** `host` publishes it on the task's own node, anything else on all nodes of the Swarm. */
  readonly mode?: string;
  readonly protocol?: string;
  readonly host_ip?: string;
}

export interface ComposeVolume {
  readonly type: string;
  readonly source?: string;
  readonly target: string;
  readonly read_only?: boolean;
  /** Of a mount that may hold data: why Hotpush does not know. Compose prints no such key. */
  readonly doubt?: string;
}
