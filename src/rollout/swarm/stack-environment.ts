import { withDotenv } from "../../platform/env-file.ts";

/**
 * The variables that a stack file sees: `env`, what `.env` beside it says (compose reads that file, `docker stack
 * deploy` does not: so both see the same), and HOTPUSH_COMMIT, twelve digits of the commit.
 *
 * @throws ProblemError `configuration_invalid` where `.env` is there and cannot be read
 */
export function stackEnvironment(
  env: NodeJS.ProcessEnv,
  projectDirectory: string,
  commit: string,
): NodeJS.ProcessEnv {
  return { ...withDotenv(env, projectDirectory), HOTPUSH_COMMIT: commit.slice(0, 12) };
}
