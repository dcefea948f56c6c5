import type { Command } from "commander";
import { stateDirectoryOf } from "../config/state-path.ts";
import type { ComposeTarget } from "../platform/compose/commands.ts";
import { connectEngine, type Engine } from "../platform/docker/engine.ts";
import { locateProject, refuseOtherState } from "../rollout/compose/locate-project.ts";
import { type RolloutState, rolloutState } from "../rollout/state.ts";

/** The options that name a compose project. */
export interface ProjectOptions {
  readonly directory?: string;
  readonly file?: readonly string[];
}

export function addProjectOptions(command: Command): Command {
  const another = (value: string, before: readonly string[] = []) => [...before, value];
  return command
    .option("--directory <path>", "the compose project (default: REPO_PATH, else the working directory)")
    .option("--file <path>", "a compose file, can be repeated (default: what compose finds)", another);
}

export interface LocatedProject extends RolloutState {
  readonly engine: Engine;
  readonly target: ComposeTarget;
}

/** @throws ProblemError as `locateProject` and `refuseOtherState` */
export async function locateNamedProject(
  { directory, file: files = [] }: ProjectOptions,
  env: NodeJS.ProcessEnv,
): Promise<LocatedProject> {
  const engine = connectEngine(env.DOCKER_HOST);
  const projectDirectory = directory ?? env.REPO_PATH ?? process.cwd();
  const target = await locateProject(engine, { projectDirectory, files });
  await refuseOtherState(engine, target.projectDirectory, env);
  return { engine, target, ...rolloutState(stateDirectoryOf(env), target.projectDirectory) };
}
