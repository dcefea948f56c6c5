import { withDotenv } from "../../platform/env-file.ts";
import { stackFiles } from "../../rollout/swarm/stack-file.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Whether the repository is deployed with compose or as a stack, told as examples/deploy.sh tells it. */
export function hasComposeFile(repoPath: string, env: Environment): boolean {
  return stackFiles({ projectDirectory: repoPath, files: [] }, seenByCompose(repoPath, env)).length > 0;
}

/** Compose reads `.env` beside its file; one that cannot be read is another check's business. */
function seenByCompose(repoPath: string, env: Environment): Environment {
  try {
    return withDotenv(env, repoPath);
  } catch {
    return env;
  }
}
