import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import {
  type ComposeModel,
  type ComposeOptions,
  type ComposeService,
  type ComposeTarget,
  type ComposeUpdateConfig,
  composeFileNames,
  loadModel,
  namedFiles,
} from "#platform/compose";
import { namesRegistry } from "#platform/docker/containers";
import { withDotenv } from "#platform/env-file";
import type { SystemUser } from "#platform/files";
import { readForeignFile } from "#platform/foreign-files";
import { ProblemError } from "#problems";
import type { RolloutContext, RolloutRequest } from "./context.ts";
import { parseGoDurationMs, type RolloutProject, type RolloutService, readProject } from "./project.ts";

/** A stack as a roll-out sees it. */
export interface Stack extends RolloutProject {
  readonly services: readonly StackService[];
}

export interface StackService extends RolloutService {
  readonly hasHealthCheck: boolean;
  /** It runs to its end, and Swarm updates it in another way than other services. */
  readonly isJob: boolean;
  /** How Swarm updates it. If the file says nothing, it is a way that drops no request. */
  readonly order: NonNullable<ComposeUpdateConfig["order"]>;
  /** What is added to its `deploy` section; the file's own settings win. */
  readonly deploy:
    | Pick<NonNullable<ComposeService["deploy"]>, "update_config" | "rollback_config">
    | undefined;
  /** How long an update may take in all. A roll back may take as long again. */
  readonly updateTimeoutMs: number;
}

/** What the steps of a stack's roll-out work with. */
export interface StackRollout extends RolloutContext {
  readonly project: Stack;
}

/**
 * Whether a project is rolled out by compose or as a stack of a Swarm: by HOTPUSH_ENGINE, else by `x-hotpush: { engine: swarm }`
 * in the stack file, else by compose.
 *
 * @throws ProblemError `configuration_invalid` or `compose_invalid` if another engine is named
 */
export async function chooseEngine(
  request: Pick<RolloutRequest, "target" | "env" | "signal"> & { readonly user?: SystemUser | null },
): Promise<"compose" | "swarm"> {
  const { target, user = null } = request;
  // No commit is known yet, and the engine does not depend on it.
  const env = stackEnvironment(request.env, target.projectDirectory, "0".repeat(12));
  const { HOTPUSH_ENGINE: given } = env;
  const files = stackFiles(target, env);
  if (!given && !files.some((file) => isMarked(resolve(target.projectDirectory, file)))) return "compose";
  // If a file cannot be read, the roll-out itself reports that, with compose's message.
  const load = () =>
    loadModel({ ...request, env, user, target: { ...target, files }, lockDescriptor: undefined });
  const named = given || ((await load().catch(() => null))?.["x-hotpush"]?.engine ?? "compose");
  if (named === "compose" || named === "swarm") return named;
  const [code, where] = given
    ? (["configuration_invalid", "HOTPUSH_ENGINE"] as const)
    : (["compose_invalid", "x-hotpush.engine"] as const);
  throw new ProblemError({ code, detail: `${where} is "${named}", neither compose nor swarm.` });
}

/** Reading the text is faster than asking compose, which takes longer than all else before a roll-out. */
function isMarked(path: string): boolean {
  try {
    return readForeignFile(path, { mostBytes: 1024 ** 2 })
      .toString()
      .includes("x-hotpush");
  } catch {
    return false;
  }
}

const stackFileNames = ["stack.yaml", "stack.yml", "docker-stack.yaml", "docker-stack.yml"];

/**
 * The files of the stack, which `docker stack deploy` does not look for by itself: the given ones, else COMPOSE_FILE,
 * else `stack.yaml`, `docker-stack.yaml` or the compose file in the project's directory. Files that only compose adds by
 * itself (`compose.override.yaml`) do not belong to a stack.
 */
export function stackFiles(target: ComposeTarget, env: NodeJS.ProcessEnv): readonly string[] {
  if (target.files.length > 0) return target.files;
  const named = namedFiles(env);
  if (named.length > 0) return named;
  const isThere = (name: string) => existsSync(join(target.projectDirectory, name));
  return [...stackFileNames, ...composeFileNames].filter(isThere).slice(0, 1);
}

/** With `.env` beside the stack file, which compose reads and `docker stack deploy` does not, and HOTPUSH_COMMIT. */
function stackEnvironment(env: NodeJS.ProcessEnv, directory: string, commit: string): NodeJS.ProcessEnv {
  return { ...withDotenv(env, directory), HOTPUSH_COMMIT: commit.slice(0, 12) };
}

/**
 * Reads the stack, with the files and variables for the commands that deploy it. Its name is `x-hotpush: { stack: shop }`
 * in the stack file, else COMPOSE_PROJECT_NAME, else the directory's name: `docker stack deploy` allows no `name:` in the file.
 *
 * @throws ProblemError `compose_invalid` with the error in the file, `configuration_invalid` if `.env` cannot be read
 */
export async function loadStack(
  options: ComposeOptions,
  commit: string,
): Promise<Pick<StackRollout, "project" | "target" | "env">> {
  const { projectDirectory } = options.target;
  const env = stackEnvironment(options.env, projectDirectory, commit);
  const files = stackFiles(options.target, env);
  if (files.length === 0)
    throw invalid(
      `There is no stack.yaml and no compose.yaml in ${projectDirectory}. Name the file with --file.`,
    );
  const target = { projectDirectory, files };
  const model = await loadModel({ ...options, env, target });
  const name = model["x-hotpush"]?.stack ?? model.name;
  if (typeof name !== "string" || !/^[a-z0-9][a-z0-9_-]*$/.test(name))
    throw invalid(`x-hotpush.stack is "${name}", not a name of lower-case letters, digits, "-" and "_".`);
  return { project: readStack({ ...model, name }), target, env: { ...env, COMPOSE_PROJECT_NAME: name } };
}

/** Makes the stack from compose's model of its file. Swarm detects by itself which services changed. */
export function readStack(model: ComposeModel): Stack {
  const { name, services } = readProject(asCompose(model));
  const stackServices = services.map((service) => {
    const said = model.services[service.name] ?? {};
    const hasHealthCheck = said.healthcheck !== undefined && !said.healthcheck.disable;
    const mayEnd = (said.deploy?.restart_policy?.condition ?? "any") !== "any";
    const isJob = said.deploy?.mode?.endsWith("-job") ?? false;
    return { ...service, hasHealthCheck, mayEnd, isJob, ...updateOf(service, said) };
  });
  return { name, services: stackServices };
}

/** Without settings that Swarm ignores. A published port clashes only if it is the node's own (`mode: host`). */
function asCompose(model: ComposeModel): ComposeModel {
  const services = Object.entries(model.services).map(([name, service]) => {
    const { container_name: _, network_mode: __, depends_on: ___, ...rest } = service;
    const ports = (service.ports ?? []).filter(({ mode }) => mode === "host");
    // Hotpush's labels may be those of the container or of the Swarm service.
    return [name, { ...rest, ports, labels: { ...service.deploy?.labels, ...service.labels } }];
  });
  return { ...model, services: Object.fromEntries(services) };
}

/** Swarm's own defaults are stop-first and pause. Services that cannot run twice are left as in the file. */
function updateOf(
  service: RolloutService,
  said: ComposeService,
): Pick<StackService, "order" | "deploy" | "updateTimeoutMs"> {
  const { update_config: update = {}, rollback_config: rollback } = said.deploy ?? {};
  const { failure_action = "rollback" } = update;
  const isSingle = service.replacement.how === "recreate";
  if (!isSingle && failure_action === "continue")
    throw invalid(
      `${service.name} has failure_action "continue": a version that fails would replace the one that serves. Write failure_action: rollback. Nothing was changed.`,
    );
  const order = update.order ?? (isSingle ? "stop-first" : "start-first");
  const rollback_config = { order: rollback?.order ?? order };
  const deploy = isSingle ? undefined : { update_config: { order, failure_action }, rollback_config };
  return { order, deploy, updateTimeoutMs: timeoutOf(service, said, { ...update, order }) };
}

/** For Swarm to place a task and create its container, and to pull an image to a node that does not have it. */
const placeMs = 5_000;
const pullMs = 120_000;

function timeoutOf(service: RolloutService, said: ComposeService, update: ComposeUpdateConfig): number {
  // One task at a time, 5 s of `monitor` and 10 s to stop are Swarm's own defaults.
  const { parallelism = 1, delay = "0s", monitor = "5s" } = update;
  const rounds = parallelism === 0 ? 1 : Math.max(1, Math.ceil(service.replicas / parallelism));
  const ms = (text: string) => parseGoDurationMs(text) ?? 0;
  const stopMs = update.order === "start-first" ? 0 : ms(said.stop_grace_period ?? "10s");
  const isHere = service.isBuilt && !namesRegistry(service.image);
  const roundMs = service.healthyTimeoutMs + placeMs + ms(delay) + stopMs;
  return rounds * roundMs + ms(monitor) + (isHere ? 0 : pullMs);
}

function invalid(detail: string): ProblemError {
  return new ProblemError({ code: "compose_invalid", detail });
}
