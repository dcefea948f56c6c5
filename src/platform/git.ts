import { type Command, type CommandEnding, runCommand } from "./run-command.ts";

const usualTimeoutMs = 10_000;

/** How git is run: `env` has its credentials. */
export type GitOptions = Pick<Command, "env" | "input" | "signal"> & { readonly timeoutMs?: number };

/** Runs git in `repository`: an argument list, never a shell string. */
export function runGit(
  repository: string,
  args: readonly string[],
  { timeoutMs = usualTimeoutMs, ...options }: GitOptions,
): Promise<CommandEnding> {
  return runCommand({ argv: ["git", "-C", repository, ...args], timeoutMs, ...options });
}

/**
 * The commit that is checked out in `repository`, which may belong to another user (in a container it does): reading its
 * head is safe all the same.
 *
 * @returns 40 (or 64) hexadecimal digits, or null if the directory is not a git checkout
 */
export async function checkedOutCommit(repository: string, env: NodeJS.ProcessEnv): Promise<string | null> {
  const ending = await runGit(repository, ["-c", "safe.directory=*", "rev-parse", "HEAD"], { env });
  if (ending.kind !== "exited" || ending.code !== 0) return null;
  const commit = ending.output.trim();
  return /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(commit) ? commit : null;
}
