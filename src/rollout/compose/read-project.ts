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
  const hashes = await ask(surroundings, hashCommand(), json);
  const model = JSON.parse(json) as ComposeModel;
  return { model, project: readProject(model, hashes) };
}

/**
 * Asks compose for the model alone.
 *
 * @throws RolloutError `compose_invalid` with what compose says
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
