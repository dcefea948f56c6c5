import { ProblemError } from "../../problems.ts";
import type { RolloutRequest } from "../request.ts";
import { mayNameEngine } from "./may-name-engine.ts";
import { readStackModel } from "./read-stack.ts";
import { stackEnvironment } from "./stack-environment.ts";
import { stackFiles } from "./stack-files.ts";
import { labelsOf, type StackModel } from "./stack-model.ts";

export type RolloutEngine = "compose" | "swarm";

/**
 * Whether a project is rolled out by compose or as a stack of a Swarm: HOTPUSH_ENGINE says it, else the stack file
 * (`x-hotpush: { engine: swarm }`, or the label `hotpush.engine=swarm` of any service), else it is compose.
 *
 * @throws ProblemError `configuration_invalid` or `compose_invalid` where another engine is named
 */
export async function chooseEngine(
  request: Pick<RolloutRequest, "target" | "env" | "signal">,
): Promise<RolloutEngine> {
  // No commit is known yet, and none is needed to find the label.
  const env = stackEnvironment(request.env, request.target.projectDirectory, "0".repeat(12));
  const { HOTPUSH_ENGINE: named } = env;
  if (named) {
    if (isEngine(named)) return named;
    throw new ProblemError({
      code: "configuration_invalid",
      detail: `HOTPUSH_ENGINE is "${named}", neither compose nor swarm.`,
    });
  }
  const target = { ...request.target, files: stackFiles(request.target, env) };
  if (!mayNameEngine(target.files, target.projectDirectory, env)) return "compose";
  // A file that cannot be read is reported by the roll-out itself, with what compose says.
  const { signal } = request;
  const model = await readStackModel({ env, signal, target, lockDescriptor: undefined }).catch(() => null);
  return model === null ? "compose" : engineNamedIn(model);
}

/** What the stack file says. */
export function engineNamedIn(model: StackModel): RolloutEngine {
  const labels = Object.values(model.services).map((service) => labelsOf(service)["hotpush.engine"]);
  const named = [model["x-hotpush"]?.engine, ...labels].filter((name) => name !== undefined && name !== null);
  const unknown = named.find((name) => !isEngine(name));
  if (unknown !== undefined) {
    throw new ProblemError({
      code: "compose_invalid",
      detail: `hotpush.engine is "${unknown}" in the stack file, neither compose nor swarm.`,
    });
  }
  return named.includes("swarm") ? "swarm" : "compose";
}

function isEngine(name: unknown): name is RolloutEngine {
  return name === "compose" || name === "swarm";
}
