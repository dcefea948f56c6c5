import { runCommand } from "../../platform/run-command.ts";

/**
 * The commit that is rolled out: the one that was named, else what is checked out in `directory`.
 *
 * @returns 40 (or 64) hexadecimal digits, or null where the directory is no git checkout
 */
export async function commitOf(
  directory: string,
  named: string | undefined,
  env: NodeJS.ProcessEnv,
): Promise<string | null> {
  if (named !== undefined && isCommit(named)) return named.toLowerCase();
  // The checkout may belong to another user (in a container it does); reading its head is safe all the same.
  const argv = ["git", "-c", "safe.directory=*", "-C", directory, "rev-parse", "HEAD"] as const;
  const ending = await runCommand({ argv, env, timeoutMs: 10_000 });
  if (ending.kind !== "exited" || ending.code !== 0) return null;
  return isCommit(ending.output.trim()) ? ending.output.trim() : null;
}

function isCommit(text: string): boolean {
  return /^[0-9a-f]{12,64}$/i.test(text);
}
