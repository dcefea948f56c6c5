/** A commit as people name it. */
export function shortCommit(commit: string): string {
  return commit.slice(0, 7);
}

/** The branch of a ref such as `refs/heads/main`. */
export function branchOf(ref: string): string {
  return ref.replace(/^refs\/heads\//, "");
}
