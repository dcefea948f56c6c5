import type { Deployment, Source } from "../deployments/deployment.ts";
import { type Commit, isAncestor, readCommit } from "../platform/git.ts";
import { printable } from "../platform/terminal/printable.ts";
import { childEnvironment, type EnvironmentOptions } from "./environment.ts";

const longestSubject = 200;
const longestAuthor = 100;

/**
 * Reads the commit that is checked out in the repository, or, as a roll back checks nothing out, the one that it goes
 * back to. Until a script has succeeded, only a commit that contains the one asked for is its work: before the pull, an
 * older one is checked out.
 *
 * @returns null if it is not known. Never rejects.
 */
export async function readSource(
  options: EnvironmentOptions,
  { trigger, commit }: Deployment,
  state: Deployment["state"],
): Promise<Source | null> {
  const env = childEnvironment(options);
  const { repoPath } = options;
  try {
    if (trigger === "rollback") return sourceOf(await readCommit(repoPath, commit, env), null);
    const head = await readCommit(repoPath, "HEAD", env);
    if (head === null) return null;
    const isItsWork = state === "succeeded" || (await isAncestor(repoPath, commit, head.id, env));
    return isItsWork ? sourceOf(head, head.id) : null;
  } catch {
    // The machine is short of something: this is worth no more than an empty column.
    return null;
  }
}

function sourceOf(found: Commit | null, checkedOutCommit: string | null): Source | null {
  if (found === null) return null;
  const [subject, author] = [
    printable(found.subject, longestSubject),
    printable(found.author, longestAuthor),
  ];
  return { checkedOutCommit, subject: subject.trim() || null, author: author.trim() || null };
}
