import { ProblemError } from "../../problems.ts";
import { configCommand, hashCommand } from "./compose.ts";
import type { ComposeModel } from "./compose-model.ts";
import { type Project, readProject } from "./project.ts";
import { hasEndedWell, linesOf, runCompose, type Surroundings } from "./run-compose.ts";

const readTimeoutMs = 60_000;

/**
 * Asks compose for the project: the model with all variables resolved, and the hash that tells what changed.
 *
 * @throws ProblemError `compose_invalid` with what compose says
 */
export async function loadProject(
  surroundings: Surroundings,
): Promise<{ readonly model: ComposeModel; readonly project: Project }> {
  const json = await askForModel(surroundings);
  const model = JSON.parse(json) as ComposeModel;
  const hashes: string[] = [];
  // One after the other: the app needs the other core.
  for (const form of formsOf(model, json)) hashes.push(await ask(surroundings, hashCommand(), form));
  return { model, project: readProject(model, hashes) };
}

/**
 * What containers of the model may have been made of. Before 2.29.3, the hash that compose gives them holds the
 * dependencies, and not where it was told to leave them alone (`up --no-deps`), as it is here.
 * See https://github.com/docker/compose/issues/12069
 */
function formsOf(model: ComposeModel, json: string): readonly string[] {
  const services = Object.entries(model.services);
  if (services.every(([, { depends_on }]) => depends_on === undefined)) return [json];
  const alone = services.map(([name, { depends_on, ...rest }]) => [name, rest]);
  return [JSON.stringify({ ...model, services: Object.fromEntries(alone) }), json];
}

/**
 * Asks compose for the model alone.
 *
 * @throws ProblemError `compose_invalid` with what compose says
 */
export async function loadModel(surroundings: Surroundings): Promise<ComposeModel> {
  return JSON.parse(await askForModel(surroundings)) as ComposeModel;
}

function askForModel(surroundings: Surroundings): Promise<string> {
  return ask(surroundings, configCommand(surroundings.target));
}

async function ask(
  surroundings: Surroundings,
  argv: readonly [string, ...string[]],
  input?: string,
): Promise<string> {
  const ending = await runCompose(surroundings, argv, {
    timeoutMs: readTimeoutMs,
    ...(input === undefined ? {} : { input }),
  });
  if (ending.kind === "exited" && hasEndedWell(ending)) return ending.output;
  const where = surroundings.target.projectDirectory;
  throw new ProblemError({
    code: "compose_invalid",
    detail: `The compose project in ${where} cannot be read.`,
    evidence: linesOf(ending),
  });
}
