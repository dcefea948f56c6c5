import { configCommand, imagesCommand } from "../../platform/compose/commands.ts";
import type { ComposeModel } from "../../platform/compose/model.ts";
import type { Argv } from "../../platform/run-command.ts";
import { ProblemError } from "../../problems.ts";
import { hasEndedWell, linesOf, runCompose, type Surroundings } from "./run-compose.ts";

const readTimeoutMs = 60_000;

/**
 * Asks compose for the project with all variables resolved.
 *
 * @throws ProblemError `compose_invalid` with what compose says
 */
export async function loadModel(surroundings: Surroundings): Promise<ComposeModel> {
  return JSON.parse(await askCompose(surroundings, configCommand(surroundings.target))) as ComposeModel;
}

/**
 * Asks compose for the names of all images that the project may run. A service in an inactive profile is left out of the
 * model, but a cron job may run it at any time (`docker compose --profile backup run backup`).
 *
 * @throws ProblemError `compose_invalid` with what compose says
 */
export async function loadImageNames(surroundings: Surroundings): Promise<readonly string[]> {
  const names = await askCompose(surroundings, imagesCommand(surroundings.target));
  return [...new Set(names.split("\n").filter(Boolean))];
}

/**
 * Asks compose something about the project in the files, or in `input`.
 *
 * @throws ProblemError `compose_invalid` with what compose says
 */
export async function askCompose(surroundings: Surroundings, argv: Argv, input?: string): Promise<string> {
  const ending = await runCompose(surroundings, argv, {
    timeoutMs: readTimeoutMs,
    ...(input === undefined ? {} : { input }),
  });
  if (ending.kind === "exited" && hasEndedWell(ending)) return ending.output;
  const where = surroundings.target.projectDirectory;
  throw new ProblemError({
    code: "compose_invalid",
    detail: `The compose file in ${where} cannot be read.`,
    evidence: linesOf(ending),
  });
}
