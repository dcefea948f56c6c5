import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import {
  type ComposeOptions,
  type ComposeTarget,
  composeFileNames,
  loadModel,
  namedFiles,
} from "#platform/compose";
import type { ComposeModel, ComposeService, ComposeUpdateConfig } from "#platform/compose-model";
import { namesRegistry } from "#platform/docker/images";
import { withDotenv } from "#platform/env-file";
import { readForeignFile } from "#platform/foreign-files";
import type { SystemUser } from "#platform/users";
import { ProblemError } from "#problems";
import type { RolloutContext, RolloutRequest } from "../context.ts";
import { parseGoDurationMs, type RolloutProject, type RolloutService, readProject } from "../project.ts";

/** A stack as a roll-out sees it. */
export interface Stack extends RolloutProject {
  readonly services: readonly StackService[];
}

export interface StackService extends RolloutService {
  readonly update: UpdatePolicy;
  readonly hasHealthCheck: boolean;
  /** Its tasks may end by themselves (a migration): Swarm does not start them again. */
  readonly mayEnd: boolean;
}

/** What the steps of a stack's roll-out work with. */
export interface StackRollout extends RolloutContext {
  readonly project: Stack;
}

export type EngineName = "compose" | "swarm";

/**
 * Whether a project is rolled out by compose or as a stack of a Swarm. HOTPUSH_ENGINE decides, else the stack file
 * (`x-hotpush: { engine: swarm }`, or the label `hotpush.engine=swarm` of any service), else it is compose.
 *
 * @throws ProblemError `configuration_invalid` or `compose_invalid` if another engine is named
 */
export async function chooseEngine(
  request: Pick<RolloutRequest, "target" | "env" | "signal"> & { readonly user?: SystemUser | null },
): Promise<EngineName> {
  const { target, signal, user = null } = request;
  // No commit is known yet, and the engine does not depend on it.
  const env = stackEnvironment(request.env, target.projectDirectory, "0".repeat(12));
  const { HOTPUSH_ENGINE: named } = env;
  if (named) return engineName(named, "configuration_invalid", `HOTPUSH_ENGINE is "${named}"`);
  const files = stackFiles(target, env);
  if (!mayNameEngine(files, target.projectDirectory)) return "compose";
  // If a file cannot be read, the roll-out itself reports that, with compose's message.
  const options = { env, user, signal, target: { ...target, files }, lockDescriptor: undefined };
  const model = await loadModel(options).catch(() => null);
  return model === null ? "compose" : engineNamedIn(model);
}

/** Text that names an engine, or another file that may. */
const hints = /hotpush\.engine|x-hotpush|^\s*(?:-\s*)?(?:include|extends|label_file)\s*:/m;

/** Reading the text is faster than asking compose, which takes longer than all else before a roll-out; true if in doubt. */
function mayNameEngine(files: readonly string[], projectDirectory: string): boolean {
  try {
    const texts = files.map((file) =>
      readForeignFile(resolve(projectDirectory, file), { mostBytes: 1024 ** 2 }).toString(),
    );
    return texts.length === 0 || texts.some((text) => hints.test(text));
  } catch {
    return true;
  }
}

/** The engine that the stack file names. @throws ProblemError `compose_invalid` if it is another one */
export function engineNamedIn(model: ComposeModel): EngineName {
  const labels = Object.values(model.services).map((service) => labelsOf(service)["hotpush.engine"]);
  const engines = [model["x-hotpush"]?.engine, ...labels]
    .filter((name) => name !== undefined && name !== null)
    .map((name) => engineName(name, "compose_invalid", `hotpush.engine is "${name}" in the stack file`));
  return engines.includes("swarm") ? "swarm" : "compose";
}

function engineName(
  name: unknown,
  code: "configuration_invalid" | "compose_invalid",
  what: string,
): EngineName {
  if (name === "compose" || name === "swarm") return name;
  throw new ProblemError({ code, detail: `${what}, neither compose nor swarm.` });
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
  for (const file of files)
    refuseMisreadVariables(file, readFileSync(resolve(projectDirectory, file), "utf8"));
  const name = model["x-hotpush"]?.stack ?? model.name;
  if (typeof name !== "string" || !/^[a-z0-9][a-z0-9_-]*$/.test(name))
    throw invalid(`x-hotpush.stack is "${name}", not a name of lower-case letters, digits, "-" and "_".`);
  return { project: readStack({ ...model, name }), target, env: { ...env, COMPOSE_PROJECT_NAME: name } };
}

/**
 * Refuses a stack file that `docker stack deploy` and compose read differently: `${NAME:?message}` with a "-" in the message,
 * and `${NAME-default}` with ":-" in the default. Docker takes what comes after the "-" as the value, even if the variable
 * is set: a secret would silently become the end of a sentence. (Docker 28, `cli/compose/template`.)
 *
 * @throws ProblemError `compose_invalid` with the line to change
 */
export function refuseMisreadVariables(file: string, text: string): void {
  // Comments stay as empty lines, so that lines can be counted. A doubled dollar sign is only text.
  const code = text.replace(/^[ \t]*#.*$/gm, "");
  const found = /(?<!\$)(?:\$\$)*\$\{([A-Za-z_]\w*)(?::?\?[^}]*-|-[^}]*:-)[^}]*\}/.exec(code);
  if (found === null) return;
  const line = code.slice(0, found.index).split("\n").length;
  const advice = 'Write the message (or the default) without a "-". Nothing was changed.';
  throw invalid(
    `${file}, line ${line}: docker stack deploy would take what comes after the "-" in \${${found[1]}…} to be the value of ${found[1]}, set or not. ${advice}`,
  );
}

/** Makes the stack from compose's model of its file. Swarm detects by itself which services changed. */
export function readStack(model: ComposeModel): Stack {
  const { name, services } = readProject(asCompose(model));
  return {
    name,
    services: services.map((service) => {
      const said = model.services[service.name] ?? {};
      const hasHealthCheck = said.healthcheck !== undefined && !said.healthcheck.disable;
      const mayEnd = (said.deploy?.restart_policy?.condition ?? "any") !== "any";
      return { ...service, update: updatePolicyOf(service, said), hasHealthCheck, mayEnd };
    }),
  };
}

/** Without settings that Swarm ignores. A published port clashes only if it is the node's own (`mode: host`). */
function asCompose(model: ComposeModel): ComposeModel {
  const services = Object.entries(model.services).map(([name, service]) => {
    const { container_name: _, network_mode: __, depends_on: ___, ...rest } = service;
    const ports = (service.ports ?? []).filter(({ mode }) => mode === "host");
    return [name, { ...rest, ports, labels: labelsOf(service) }];
  });
  return { ...model, services: Object.fromEntries(services) };
}

/** Labels of the container and of the Swarm service: Hotpush's may be in either place. */
function labelsOf(service: ComposeService): Readonly<Record<string, string>> {
  return { ...service.deploy?.labels, ...service.labels };
}

/** How Swarm updates a service: as the stack file says, and if it says nothing, in a way that drops no request. */
export interface UpdatePolicy {
  readonly order: "start-first" | "stop-first";
  /** Additions to the service's `deploy` section; settings in the file win. */
  readonly added: {
    readonly update_config?: Pick<ComposeUpdateConfig, "order" | "failure_action">;
    readonly rollback_config?: Pick<ComposeUpdateConfig, "order">;
  };
  /** Notes for a person about risky settings in the file. */
  readonly warnings: readonly string[];
  /** How long an update may take in all. A roll back may take as long again. */
  readonly timeoutMs: number;
}

/** Swarm's own defaults are stop-first and pause. Services that cannot run twice are left as in the file. */
function updatePolicyOf(service: RolloutService, said: ComposeService): UpdatePolicy {
  const { update_config: update = {}, rollback_config: rollback } = said.deploy ?? {};
  const { failure_action = "rollback" } = update;
  const isSingle = service.replacement.how === "recreate";
  if (!isSingle && failure_action === "continue")
    throw invalid(
      `${service.name} has failure_action "continue": a version that fails would replace the one that serves. Write failure_action: rollback. Nothing was changed.`,
    );
  const usual = isSingle ? "stop-first" : "start-first";
  const order = update.order === "start-first" || update.order === "stop-first" ? update.order : usual;
  const timeoutMs = timeoutOf(service, said, { ...update, order });
  if (isSingle) return { order, added: {}, warnings: [], timeoutMs };
  const away = `the stack file says order: stop-first, so ${service.name} is away while its tasks are replaced`;
  const stays = `the stack file says failure_action: ${failure_action}, so Swarm does not roll back by itself`;
  const warnings = [
    ...(order === "stop-first" ? [away] : []),
    ...(failure_action === "rollback" ? [] : [stays]),
  ];
  const added = {
    update_config: { order, failure_action },
    rollback_config: { order: rollback?.order ?? order },
  };
  return { order, added, warnings, timeoutMs };
}

/** For Swarm to place a task and create its container, and to pull an image to a node that does not have it. */
const [placeMs, pullMs] = [5_000, 120_000];

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
