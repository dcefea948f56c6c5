import { basename } from "node:path";
import { type Branch, branches } from "#config/settings";
import type { CommandEnding } from "#platform/run-command";
import { CommandError } from "#problems";
import { git, parseRemoteUrl, readRemoteUrl, tryGit } from "#setup/project";
import { type GitHost, gitHostOf, payloadName } from "#setup/webhook-form";

/** The newest commit of a repository's main branch, as a push reports it. */
export interface RepositoryHead {
  readonly ref: "refs/heads/main" | "refs/heads/master";
  readonly commit: string;
  /** First line of the commit's message. */
  readonly subject: string;
  readonly author: { readonly name: string; readonly email: string };
  /** `owner/name` as the host's payload has it, from the remote's URL; from the directory's name if there is none. */
  readonly repository: string;
}

/**
 * Reads the head of `main`, else of `master`: of the branch that is checked out if it is one of them, else of the
 * local branch, else of the remote's.
 *
 * @param host decides what the payload calls the repository; null: the host that the remote's name shows
 * @param branch the only one that counts, from BRANCH; null: either
 * @throws CommandError if `directory` is not a repository, or has none of the branches, or they have no commit
 */
export async function readRepositoryHead(
  directory: string,
  host: GitHost | null = null,
  branch: Branch | null = null,
): Promise<RepositoryHead> {
  const check = await tryGit(directory, "rev-parse", "--git-dir");
  if (check.kind !== "exited" || check.code !== 0) throw new CommandError(notUsable(directory, check));
  const wanted = branch === null ? branches : [branch];
  const head = await readHead(directory, wanted);
  if (head) return { ...head, repository: await repositoryName(directory, host) };
  throw new CommandError(
    `${directory} has no branch ${wanted.join(" or ")} with a commit, and no other is deployed. Make a commit on ${branch ?? "one of them"}.`,
  );
}

const format = ["HEAD", "refname", "objectname", "authorname", "authoremail", "contents:subject"]
  .map((field) => `%(${field})`)
  .join("%1f");

async function readHead(directory: string, wanted: readonly Branch[]) {
  const places = ["refs/heads", "refs/remotes/origin"];
  const refs = places.flatMap((place) => wanted.map((branch) => `${place}/${branch}`));
  const output = await git(directory, "for-each-ref", `--format=${format}`, ...refs);
  if (output === null) throw new CommandError(`git cannot read the branches of ${directory}. Try: git fsck`);
  const found = output.split("\n").map((line) => line.split("\x1f"));
  const isHead = ([mark, ref]: string[]) => mark === "*" && refs.includes(ref ?? "");
  const fields =
    found.find(isHead) ?? refs.map((name) => found.find(([, ref]) => ref === name)).find(Boolean);
  if (!fields) return null;
  const [, ref = "", commit = "", name = "", email = "", subject = ""] = fields;
  const author = { name, email: email.slice(1, -1) };
  return { ref: `refs/heads/${ref.endsWith("/main") ? "main" : "master"}`, commit, subject, author } as const;
}

async function repositoryName(directory: string, host: GitHost | null): Promise<string> {
  const url = await readRemoteUrl(directory);
  const remote = url === null ? null : parseRemoteUrl(url);
  if (remote) return payloadName(remote.path, host ?? gitHostOf(remote));
  const top = (await git(directory, "rev-parse", "--show-toplevel")) ?? directory;
  return `local/${basename((url ?? top).replace(/(?<!\/)\/+$/, "").replace(/\.git$/, ""))}`;
}

function notUsable(directory: string, { kind, lastLines }: CommandEnding): string {
  if (kind === "not_found") return "git is not installed. Install git, or name the body to send with --file.";
  if (lastLines.some((line) => line.includes("dubious ownership"))) {
    return `${directory} belongs to another user, so git refuses it. Run: git config --global --add safe.directory ${directory}`;
  }
  return `${directory} is not a git repository. Go to your project's directory, set REPO_PATH to it, or name the body to send with --file.`;
}
