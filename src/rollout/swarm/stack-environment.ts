import { withDotenv } from "../../config/dotenv.ts";
import { ProblemError } from "../../problems.ts";
import { RolloutError } from "../problems.ts";

/**
 * The variables that a stack file sees: `env`, what `.env` beside it says (compose reads that file, `docker stack
 * deploy` does not: so both see the same), and HOTPUSH_COMMIT, twelve digits of the commit.
 */
export function stackEnvironment(
  env: NodeJS.ProcessEnv,
  projectDirectory: string,
  commit: string,
): NodeJS.ProcessEnv {
  try {
    return { ...withDotenv(env, projectDirectory), HOTPUSH_COMMIT: commit.slice(0, 12) };
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    throw new RolloutError("compose_invalid", error.problem.detail, [], error);
  }
}
