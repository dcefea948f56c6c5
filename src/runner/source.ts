import { readFileSync, writeFileSync } from "node:fs";
import type { Deployment, Source } from "../deployments/deployment.ts";
import { type Commit, checkedOutCommit, isAncestor, readCommit } from "../platform/git.ts";
import { printable } from "../platform/terminal/printable.ts";
import { childEnvironment, type EnvironmentOptions } from "./environment.ts";
import { type RunDirectory, runDirectory } from "./run-directory.ts";

const longestSubject = 200;
const longestAuthor = 100;

/** Notes the HEAD of the repository before the script runs, empty if it has none. Never rejects: a note can be missing. */
export async function noteHead(
  { headPath }: RunDirectory,
  repoPath: string,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  try {
    writeFileSync(headPath, (await checkedOutCommit(repoPath, env)) ?? "", { mode: 0o600 });
  } catch {
    // The machine is short of something: the script matters more.
  }
}

/**
 * Reads the commit that a deployment has checked out: HEAD, if it contains the commit asked for, or if the script
 * succeeded and moved HEAD. Any other HEAD was there before. A roll back checks nothing out, so its own commit is read.
 *
 * @returns null if it is not known. Never rejects.
 */
export async function readSource(
  options: EnvironmentOptions & { readonly statePath: string },
  { id, trigger, commit }: Deployment,
  state: Deployment["state"],
): Promise<Source | null> {
  const env = childEnvironment(options);
  const { repoPath, statePath } = options;
  try {
    if (trigger === "rollback") return sourceOf(await readCommit(repoPath, commit, env), null);
    const head = await readCommit(repoPath, "HEAD", env);
    if (head === null) return null;
    const hasMoved = () =>
      state === "succeeded" && readFileSync(runDirectory(statePath, id).headPath, "utf8") !== head.id;
    const isItsWork = (await isAncestor(repoPath, commit, head.id, env)) || hasMoved();
    return isItsWork ? sourceOf(head, head.id) : null;
  } catch {
    // The note is missing, or the machine is short of something: this is worth no more than an empty column.
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
