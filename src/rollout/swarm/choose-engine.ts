import { resolve } from "node:path";
import { loadModel } from "../../platform/compose/ask-compose.ts";
import type { ComposeModel } from "../../platform/compose/model.ts";
import { readForeignFile } from "../../platform/foreign-files.ts";
import type { SystemUser } from "../../platform/users.ts";
import { ProblemError } from "../../problems.ts";
import type { RolloutRequest } from "../context.ts";
import { labelsOf, stackEnvironment, stackFiles } from "./stack-file.ts";

/** A larger file may name an engine. */
const mostBytes = 1024 ** 2;

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
  // No commit is known yet, and the label does not depend on it.
  const env = stackEnvironment(request.env, request.target.projectDirectory, "0".repeat(12));
  const { HOTPUSH_ENGINE: named } = env;
  if (named) {
    if (isEngineName(named)) return named;
    throw new ProblemError({
      code: "configuration_invalid",
      detail: `HOTPUSH_ENGINE is "${named}", neither compose nor swarm.`,
    });
  }
  const target = { ...request.target, files: stackFiles(request.target, env) };
  if (!mayNameEngine(target.files, target.projectDirectory, env)) return "compose";
  // If a file cannot be read, the roll-out itself reports that, with compose's message.
  const { signal, user = null } = request;
  const model = await loadModel({ env, user, signal, target, lockDescriptor: undefined }).catch(() => null);
  return model === null ? "compose" : engineNamedIn(model);
}

/** Text that names an engine, includes other files that may, or hides a name (an escape, a variable). */
const hints = /\.engine\b|x-hotpush|hotpush\.\$|\\[xuU]|\0|\b(?:include|extends|label_file)\b/;

/**
 * Whether `files` may name an engine; true if in doubt. Most files do not, and reading their text is faster than asking
 * compose, which takes longer than everything else before a roll-out.
 */
export function mayNameEngine(
  files: readonly string[],
  projectDirectory: string,
  env: NodeJS.ProcessEnv,
): boolean {
  // Compose also looks in the parent directories, and in files of variables.
  if (files.length === 0 || env.COMPOSE_ENV_FILES) return true;
  try {
    const texts = files.map((file) =>
      readForeignFile(resolve(projectDirectory, file), { mostBytes }).toString(),
    );
    // A whole label can come from a variable.
    return [...texts, ...Object.values(env)].some((text) => text !== undefined && hints.test(text));
  } catch {
    return true;
  }
}

/** The engine that the stack file names. */
export function engineNamedIn(model: ComposeModel): EngineName {
  const labels = Object.values(model.services).map((service) => labelsOf(service)["hotpush.engine"]);
  const named = [model["x-hotpush"]?.engine, ...labels].filter((name) => name !== undefined && name !== null);
  const unknown = named.find((name) => !isEngineName(name));
  if (unknown !== undefined) {
    throw new ProblemError({
      code: "compose_invalid",
      detail: `hotpush.engine is "${unknown}" in the stack file, neither compose nor swarm.`,
    });
  }
  return named.includes("swarm") ? "swarm" : "compose";
}

function isEngineName(name: unknown): name is EngineName {
  return name === "compose" || name === "swarm";
}
