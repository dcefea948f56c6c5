import { git, type Place } from "../git.ts";

/** One ref that a push moved, as a post-receive hook gets it. */
export interface RefUpdate {
  readonly before: string;
  readonly after: string;
  readonly ref: string;
}

const person = { name: "Ada", email: "ada@example.com" };
const owner = { ...person, login: "ada", id: 1, type: "User", site_admin: false };
const page = "https://git.example.com/ada/app";

/**
 * GitHub's payload of a push to the bare repository at `place`.
 * https://docs.github.com/en/webhooks/webhook-events-and-payloads#push
 */
export async function pushPayload(place: Place, { before, after, ref }: RefUpdate): Promise<object> {
  const isCreated = isNone(before);
  const isDeleted = isNone(after);
  const range = isCreated ? [after] : [`${before}..${after}`];
  const ids = isDeleted ? [] : await linesOf(place, "rev-list", "--reverse", "--max-count=20", ...range);
  const commits = await Promise.all(ids.map((id) => describeCommit(place, id)));
  return {
    ref,
    before,
    after,
    created: isCreated,
    deleted: isDeleted,
    forced: !isCreated && !isDeleted && (await isForced(place, before, after)),
    base_ref: null,
    compare: `${page}/compare/${before.slice(0, 12)}...${after.slice(0, 12)}`,
    commits,
    head_commit: isDeleted ? null : await describeCommit(place, after),
    repository: describeRepository(),
    pusher: person,
    sender: owner,
  };
}

function describeRepository() {
  return {
    id: 1,
    name: "app",
    full_name: "ada/app",
    private: true,
    owner,
    html_url: page,
    url: page,
    clone_url: `${page}.git`,
    ssh_url: "git@git.example.com:ada/app.git",
    pushed_at: Math.floor(Date.now() / 1_000),
    default_branch: "main",
    master_branch: "main",
  };
}

async function describeCommit(place: Place, id: string) {
  const format = "--format=%T%x00%cI%x00%an%x00%ae%x00%cn%x00%ce%x00%B";
  const { stdout } = await git(place, "show", "--no-patch", format, id);
  const [tree, timestamp, authorName, authorEmail, committerName, committerEmail, message] =
    stdout.split("\0");
  const changes = await linesOf(place, "diff-tree", "--root", "--no-commit-id", "--name-status", "-r", id);
  const changed = (kind: string) =>
    changes.filter((change) => change.startsWith(kind)).map((change) => change.slice(2));
  return {
    id,
    tree_id: tree,
    distinct: true,
    message: message?.trimEnd(),
    timestamp,
    url: `${page}/commit/${id}`,
    author: { name: authorName, email: authorEmail, username: "ada" },
    committer: { name: committerName, email: committerEmail, username: "ada" },
    added: changed("A"),
    removed: changed("D"),
    modified: changed("M"),
  };
}

async function isForced(place: Place, before: string, after: string): Promise<boolean> {
  const { stdout } = await git(place, "rev-list", "--max-count=1", before, `^${after}`);
  return stdout !== "";
}

async function linesOf(place: Place, ...args: readonly string[]): Promise<readonly string[]> {
  const { stdout } = await git(place, ...args);
  return stdout.split("\n").filter((line) => line !== "");
}

/** The zeros that mean "no commit" in git. */
function isNone(commit: string): boolean {
  return /^0+$/.test(commit);
}
