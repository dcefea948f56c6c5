import { askCompose } from "../../platform/compose/ask-compose.ts";
import { configCommand } from "../../platform/compose/commands.ts";
import type { ComposeOptions } from "../../platform/compose/run-compose.ts";
import { ProblemError } from "../../problems.ts";
import { refuseMisread } from "./refuse-misread.ts";
import { readStack, type Stack } from "./stack.ts";
import { stackEnvironment } from "./stack-environment.ts";
import { stackFiles } from "./stack-files.ts";
import type { StackModel } from "./stack-model.ts";

/** A stack with what its commands are run with. */
export interface LoadedStack {
  readonly stack: Stack;
  readonly surroundings: ComposeOptions;
}

/**
 * Reads the stack that `surroundings` are about. Its name is what the stack file says (`x-hotpush: { stack: shop }`),
 * else COMPOSE_PROJECT_NAME, else the directory's name: `docker stack deploy` allows no `name:` in the file.
 *
 * @throws ProblemError `compose_invalid` with what is wrong in the file
 */
export async function loadStack(surroundings: ComposeOptions, commit: string): Promise<LoadedStack> {
  const { projectDirectory } = surroundings.target;
  const env = stackEnvironment(surroundings.env, projectDirectory, commit);
  const files = stackFiles(surroundings.target, env);
  if (files.length === 0) {
    const text = `There is no stack.yaml and no compose.yaml in ${projectDirectory}. Name the file with --file.`;
    throw new ProblemError({ code: "compose_invalid", detail: text });
  }
  const found = { ...surroundings, env, target: { projectDirectory, files } };
  const model = await readStackModel(found);
  refuseMisread(files, projectDirectory);
  const name = nameOf(model);
  return {
    stack: readStack({ ...model, name }),
    surroundings: { ...found, env: { ...env, COMPOSE_PROJECT_NAME: name } },
  };
}

/** Compose's model of the stack file. */
export async function readStackModel(surroundings: ComposeOptions): Promise<StackModel> {
  return JSON.parse(await askCompose(surroundings, configCommand(surroundings.target))) as StackModel;
}

function nameOf(model: StackModel): string {
  const named = model["x-hotpush"]?.stack;
  if (named === undefined || named === null) return model.name;
  if (typeof named === "string" && /^[a-z0-9][a-z0-9_-]*$/.test(named)) return named;
  throw new ProblemError({
    code: "compose_invalid",
    detail: `x-hotpush.stack is "${named}", not a name of lower-case letters, digits, "-" and "_".`,
  });
}
