import { checkedOutCommit } from "../../platform/git.ts";

/**
 * The commit that images and versions are named after: the one that `--commit` names, else what is checked out in
 * `directory`. DEPLOY_COMMIT is the commit that was pushed, and the branch may have moved on before the deploy script
 * pulled, so it counts only outside of git.
 *
 * @returns 12 to 64 hexadecimal digits, or null if there is neither
 */
export async function commitOf(
  directory: string,
  named: string | undefined,
  env: NodeJS.ProcessEnv,
): Promise<string | null> {
  return commitIn(named) ?? (await checkedOutCommit(directory, env)) ?? commitIn(env.DEPLOY_COMMIT);
}

function commitIn(text: string | undefined): string | null {
  return text !== undefined && /^[0-9a-f]{12,64}$/i.test(text) ? text.toLowerCase() : null;
}
