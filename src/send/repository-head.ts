import { type Branch, branches } from "../config.ts";
import { git, parseRemoteUrl, readRemoteUrl, tryGit } from "../init/git-checkout.ts";
import { type GitHost, gitHostOf, payloadName } from "../init/git-host.ts";
import { refusesOwner } from "../platform/git.ts";
import type { CommandEnding } from "../platform/run-command.ts";
import { CommandError } from "../problems.ts";

/** What a push of a repository's main branch reports. */
export interface RepositoryHead {
  readonly ref: "refs/heads/main" | "refs/heads/master";
  readonly commit: string;
  /** First line of the commit's message. */
  readonly subject: string;
  readonly author: { readonly name: string; readonly email: string };
  /** `owner/name` as the host's payload has it, from the remote's URL; from the directory's name if there is none. */
  readonly repository: string;
}

/** Why there is no head to make a push of, as a sentence. */
export class NoHeadError extends CommandError {
  override readonly name = "NoHeadError";
}

/**
 * Reads the head of `main`, else of `master`: of the branch that is checked out if it is one of them, else of the
 * local branch, else of the remote's.
 *
 * @param host decides what the payload calls the repository; null: the host that the remote's name shows
 * @param branch the only one that counts, from BRANCH; null: either
 * @throws NoHeadError if `directory` is not a repository, or has none of the branches, or they have no commit
 */
export async function readRepositoryHead(
  directory: string,
  host: GitHost | null = null,
  branch: Branch | null = null,
): Promise<RepositoryHead> {
  const check = await tryGit(directory, "rev-parse", "--git-dir");
  if (check.kind !== "exited" || check.code !== 0) throw new NoHeadError(notUsable(directory, check));
  const wanted = branch === null ? branches : [branch];
  const found = await findBranch(directory, wanted);
  if (found === null) {
    throw new NoHeadError(
      `${directory} has no branch ${wanted.join(" or ")} with a commit, and no other is deployed. Make a commit on ${branch ?? "one of them"}.`,
    );
  }
  const format = "%H%n%an%n%ae%n%s";
  const shown = await git(directory, "log", "--max-count=1", `--format=${format}`, found.rev, "--");
  if (shown === null) throw new NoHeadError(`git cannot read ${found.rev} in ${directory}. Try: git fsck`);
  const [commit = "", name = "", email = "", subject = ""] = shown.split("\n");
  return {
    ref: `refs/heads/${found.branch}`,
    commit,
    subject,
    author: { name, email },
    repository: await repositoryName(directory, host),
  };
}

async function findBranch(directory: string, wanted: readonly Branch[]) {
  const current = await git(directory, "symbolic-ref", "--quiet", "--short", "HEAD");
  const inOrder = wanted.toSorted((a, b) => Number(b === current) - Number(a === current));
  for (const place of ["refs/heads", "refs/remotes/origin"]) {
    for (const branch of inOrder) {
      const rev = `${place}/${branch}`;
      const known = await git(directory, "rev-parse", "--verify", "--quiet", `${rev}^{commit}`);
      if (known !== null) return { branch, rev };
    }
  }
  return null;
}

async function repositoryName(directory: string, host: GitHost | null): Promise<string> {
  const url = await readRemoteUrl(directory);
  const remote = url === null ? null : parseRemoteUrl(url);
  if (remote) return payloadName(remote.path, host ?? gitHostOf(remote));
  const top = (await git(directory, "rev-parse", "--show-toplevel")) ?? directory;
  const names = (url ?? top).replace(/\/+$|\.git\/*$/g, "").split("/");
  return `local/${names.at(-1)}`;
}

function notUsable(directory: string, ending: CommandEnding): string {
  if (ending.kind === "not_found")
    return "git is not installed. Install git, or name the body to send with --file.";
  if (refusesOwner(ending)) {
    return `${directory} belongs to another user, so git refuses it. Run: git config --global --add safe.directory ${directory}`;
  }
  return `${directory} is not a git repository. Go to your project's directory, set REPO_PATH to it, or name the body to send with --file.`;
}
