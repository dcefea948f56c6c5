import { loadModel } from "../../platform/compose/ask-compose.ts";
import type { ComposeModel } from "../../platform/compose/model.ts";
import type { ComposeOptions } from "../../platform/compose/run-compose.ts";
import { ProblemError } from "../../problems.ts";
import { type RolloutProject, type RolloutService, readProject } from "../compose/project.ts";
import type { RolloutContext } from "../context.ts";
import { labelsOf, refuseMisreadVariables, stackEnvironment, stackFiles } from "./stack-file.ts";
import { type UpdatePolicy, updatePolicyOf } from "./update-policy.ts";

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

/**
 * Reads the stack in the directory of `options`, with the files and variables for the commands that deploy it. Its name is `x-hotpush: { stack: shop }` in the stack file, else
 * COMPOSE_PROJECT_NAME, else the directory's name: `docker stack deploy` allows no `name:` in the file.
 *
 * @throws ProblemError `compose_invalid` with the error in the file
 */
export async function loadStack(
  options: ComposeOptions,
  commit: string,
): Promise<Pick<StackRollout, "project" | "target" | "env">> {
  const { projectDirectory } = options.target;
  const env = stackEnvironment(options.env, projectDirectory, commit);
  const files = stackFiles(options.target, env);
  if (files.length === 0) {
    const text = `There is no stack.yaml and no compose.yaml in ${projectDirectory}. Name the file with --file.`;
    throw new ProblemError({ code: "compose_invalid", detail: text });
  }
  const target = { projectDirectory, files };
  const model = await loadModel({ ...options, env, target });
  refuseMisreadVariables(files, projectDirectory);
  const name = nameOf(model);
  return { project: readStack({ ...model, name }), target, env: { ...env, COMPOSE_PROJECT_NAME: name } };
}

function nameOf(model: ComposeModel): string {
  const named = model["x-hotpush"]?.stack;
  if (named === undefined || named === null) return model.name;
  if (typeof named === "string" && /^[a-z0-9][a-z0-9_-]*$/.test(named)) return named;
  throw new ProblemError({
    code: "compose_invalid",
    detail: `x-hotpush.stack is "${named}", not a name of lower-case letters, digits, "-" and "_".`,
  });
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

/**
 * Without settings that Swarm ignores, and without those that keep two containers, but not two tasks, from running at
 * once. A published port only clashes if it is the node's own (`mode: host`): Swarm shares all others.
 */
function asCompose(model: ComposeModel): ComposeModel {
  const services = Object.entries(model.services).map(([name, service]) => {
    const { container_name: _, network_mode: __, depends_on: ___, ...rest } = service;
    const ports = (service.ports ?? []).filter(({ mode }) => mode === "host");
    return [name, { ...rest, ports, labels: labelsOf(service) }];
  });
  return { ...model, services: Object.fromEntries(services) };
}
