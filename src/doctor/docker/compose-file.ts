import { stackFiles } from "../../rollout/swarm/stack-files.ts";

/** Whether the repository is deployed with compose or as a stack, told as examples/deploy.sh tells it. */
export function hasComposeFile(repoPath: string, env: Readonly<Record<string, string | undefined>>): boolean {
  return stackFiles({ projectDirectory: repoPath, files: [] }, env).length > 0;
}
