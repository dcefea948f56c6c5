import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Command, type CommandEnding, outputIfGood, runCommand } from "./run-command.ts";

const usualTimeoutMs = 10_000;

/** Variables with which git, and the ssh that it starts, fail at once instead of asking a question that nobody answers. */
export const neverAsk = {
  GIT_TERMINAL_PROMPT: "0",
  GIT_ASKPASS: "/bin/false",
  SSH_ASKPASS: "/bin/false",
  GIT_SSH_COMMAND: "ssh -o BatchMode=yes",
} as const;

/** How git is run: `env` and the home of `user` have its credentials. */
export type GitOptions = Pick<Command, "env" | "user" | "input" | "signal" | "onLine"> & {
  readonly timeoutMs?: number;
};

/** As whom git reads the history of a repository. */
export type GitReader = Pick<GitOptions, "user"> & { readonly env: NodeJS.ProcessEnv };

/** Runs git in `repository`: an argument list, never a shell string. */
export function runGit(
  repository: string,
  args: readonly string[],
  { timeoutMs = usualTimeoutMs, ...options }: GitOptions,
): Promise<CommandEnding> {
  return runCommand({ argv: ["git", "-C", repository, ...args], timeoutMs, ...options });
}

/** Runs git in `repository`. @returns what it wrote to its standard output, trimmed; null unless it exits with code 0 */
export async function gitOutput(
  repository: string,
  args: readonly string[],
  options: GitOptions,
): Promise<string | null> {
  return outputIfGood(await runGit(repository, args, options));
}

/** Whether git refused to work because the repository belongs to another user. */
export function refusesOwner({ lastLines }: Pick<CommandEnding, "lastLines">): boolean {
  return lastLines.some((line) => line.includes("dubious ownership"));
}

/**
 * The commit that is checked out in `repository`, which may belong to another user (in a container it does): reading its
 * head is safe anyway.
 *
 * @returns 40 (or 64) hexadecimal digits, or null if the directory is not a git checkout
 */
export async function checkedOutCommit(repository: string, reader: GitReader): Promise<string | null> {
  const output = await readHistory(repository, ["rev-parse", "HEAD"], reader);
  return output !== null && isFullCommit(output) ? output : null;
}

/** A commit as git has it. Its texts are untrusted, and up to 1,000 columns long. */
export interface Commit {
  readonly id: string;
  readonly subject: string;
  readonly author: string;
}

/** Has git pad or cut what follows to so many columns: a message may be megabytes long. */
const bounded = "%<(1000,trunc)";

/**
 * Reads a commit of `repository`, regardless of its owner.
 *
 * @param revision `HEAD`, or 40 (or 64) hexadecimal digits; nothing else reaches git
 * @returns null if it is not there, or the directory is not a git checkout
 */
export async function readCommit(
  repository: string,
  revision: string,
  reader: GitReader,
): Promise<Commit | null> {
  if (revision !== "HEAD" && !isFullCommit(revision)) return null;
  // Plumbing: unlike `git log`, it takes no format, pager or signature check from the settings of the repository.
  const format = `--format=${bounded}%an%x00${bounded}%s`;
  const args = ["rev-list", "--max-count=1", "--encoding=UTF-8", format, revision, "--"];
  const output = await readHistory(repository, args, reader);
  const [, id, author, subject] = /^commit ([0-9a-f]+)\n([^\0]*)\0([^\0]*)$/.exec(output ?? "") ?? [];
  if (id === undefined || author === undefined || subject === undefined) return null;
  return { id, subject: subject.trimEnd(), author: author.trimEnd() };
}

/** Whether `ancestor` is `commit` or comes before it; false if `repository` does not have both. */
export async function isAncestor(
  repository: string,
  ancestor: string,
  commit: string,
  reader: GitReader,
): Promise<boolean> {
  if (!isFullCommit(ancestor) || !isFullCommit(commit)) return false;
  return (await readHistory(repository, ["merge-base", "--is-ancestor", ancestor, commit], reader)) !== null;
}

/**
 * Counts the commits of `tip` that none of `known` contains; a known commit that `repository` does not have counts as none.
 *
 * @returns at most `most`; null if `repository` does not have `tip`
 */
export async function countNewCommits(
  repository: string,
  tip: string,
  { known, most }: { readonly known: readonly string[]; readonly most: number },
  reader: GitReader,
): Promise<number | null> {
  const present = await readCommit(repository, tip, reader);
  if (present === null || !known.every(isFullCommit)) return null;
  const args = [
    "rev-list",
    "--count",
    `--max-count=${most}`,
    "--ignore-missing",
    present.id,
    "--not",
    ...known,
    "--",
  ];
  const output = await readHistory(repository, args, reader);
  return output === null ? null : Number(output);
}

/** The environment in which git ignores replaced objects of a repository, which would be other commits with the same id. */
export function withoutReplacements<Env extends NodeJS.ProcessEnv>(
  env: Env,
): Env & { readonly GIT_NO_REPLACE_OBJECTS: string } {
  return { ...env, GIT_NO_REPLACE_OBJECTS: "1" };
}

/**
 * The difference between two texts of the file `name`, as `git diff` shows it; "" if they are equal. It needs no
 * repository.
 *
 * @returns null if git fails
 */
export async function diffTexts(
  name: string,
  before: string,
  after: string,
  { env, hasColour }: { readonly env: NodeJS.ProcessEnv; readonly hasColour: boolean },
): Promise<string | null> {
  const directory = mkdtempSync(join(tmpdir(), "hotpush-diff-"));
  try {
    writeSide(join(directory, "a"), name, before);
    writeSide(join(directory, "b"), name, after);
    const colour = `--color=${hasColour ? "always" : "never"}`;
    const options = ["--no-index", "--no-ext-diff", "--no-prefix", colour];
    const args = ["diff", ...options, "--", `a/${name}`, `b/${name}`];
    const ending = await runGit(directory, args, { env });
    // 1 means that they differ.
    return ending.kind === "exited" && ending.code <= 1 ? ending.output : null;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function writeSide(directory: string, name: string, text: string): void {
  const path = join(directory, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** What git prints of the history, null if it fails: nothing is fetched, and it does not matter who owns the repository. */
function readHistory(
  repository: string,
  args: readonly string[],
  { env, user }: GitReader,
): Promise<string | null> {
  const offline = { ...env, GIT_NO_LAZY_FETCH: "1" };
  return gitOutput(repository, ["-c", "safe.directory=*", ...args], { env: offline, user });
}

function isFullCommit(text: string): boolean {
  return /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text);
}
