import { checkedOutCommit } from "../../platform/git.ts";

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
  return checkedOutCommit(directory, env);
}

function isCommit(text: string): boolean {
  return /^[0-9a-f]{12,64}$/i.test(text);
}
