import { existsSync, lstatSync, realpathSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { attempt, makeScratch, ownUid, readUser, type SystemUser } from "./files.ts";
import { readForeignFile } from "./foreign-files.ts";
import { type Command, type CommandEnding, hasSucceeded, outputOf, runCommand } from "./run-command.ts";
import { printable } from "./terminal.ts";

const usualTimeoutMs = 10_000;

const mostConfigBytes = 1024 ** 2;

/**
 * Variables with which git in `repository`, and the ssh that it starts, fail at once instead of asking a question that nobody
 * answers. GIT_SSH_COMMAND would also apply to submodules and other repositories, and overrides `core.sshCommand`. So it is left
 * out if the settings of the repository name an ssh command, and names our deploy key only if they don't.
 */
export function neverAsk(repository: string) {
  const key = deployKeyPath(repository);
  const hasKey = existsSync(key);
  const config = join(repository, ".git/config");
  const settings = attempt(() => readForeignFile(config, { mostBytes: mostConfigBytes }).toString(), "");
  const command = /^\s*sshCommand\s*=.*$/im.exec(settings)?.[0];
  const isSet = command !== undefined && (!hasKey || command.includes(key));
  const ssh = `ssh -o BatchMode=yes${hasKey ? ` ${sshWithKey(key)}` : ""}`;
  return {
    GIT_TERMINAL_PROMPT: "0",
    GIT_ASKPASS: "/bin/false",
    SSH_ASKPASS: "/bin/false",
    ...(isSet ? {} : { GIT_SSH_COMMAND: ssh }),
  };
}

/** The private half of a checkout's deploy key, or the link to it: it is in its owner's home if it can, where no image is built from. */
export function deployKeyPath(repository: string): string {
  return join(repository, ".git/hotpush-deploy-key");
}

/** The options of ssh that use one key and no other, nor a connection that another key has opened, as a POSIX shell takes them. */
export function sshWithKey(path: string): string {
  return `-o ControlPath=none -o IdentitiesOnly=yes -i '${path.replaceAll("'", "'\\''")}'`;
}

/** How git is run: `env` and the home of `user` have its credentials. */
export type GitOptions = Pick<Command, "env" | "user" | "input" | "signal" | "onLine" | "maxOutputBytes"> & {
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
  const argv = ["git", "-C", repository, ...args] as const;
  return runCommand({ argv, timeoutMs, ...options, env: inEnglish(options) });
}

/** Runs git in `repository`. @returns what it wrote to its standard output, trimmed; null unless it exits with code 0 */
export function gitOutput(
  repository: string,
  args: readonly string[],
  options: GitOptions,
): Promise<string | null> {
  return outputOf(["git", "-C", repository, ...args], { ...options, env: inEnglish(options) });
}

/** What git and ssh say is read, and has many translations. */
const inEnglish = ({ env = process.env }: GitOptions) => ({ ...env, LC_ALL: "C" });

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

/** A commit as git has it. Its texts are untrusted, printable, and at most 1,000 characters long. */
export interface Commit {
  readonly id: string;
  readonly subject: string;
  readonly author: string;
}

export const maxTextChars = 1_000;
/** An author's name and the subject that follows. Either may be megabytes long: the rest is not read. */
const maxCommitBytes = 64 * 1024;

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
  const args = ["rev-list", "--max-count=1", "--encoding=UTF-8", "--format=%an%x00%s", revision, "--"];
  const ending = await runHistory(repository, args, reader, maxCommitBytes);
  const output = hasSucceeded(ending) || ending.kind === "too_long" ? ending.output : "";
  const [, id, author = "", subject = ""] = /^commit ([0-9a-f]+)\n([^\0]*)\0?([^\0]*)$/.exec(output) ?? [];
  if (id === undefined) return null;
  return {
    id,
    subject: printable(subject, maxTextChars).trim(),
    author: printable(author, maxTextChars).trim(),
  };
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
  const range = [present.id, "--not", ...known, "--"];
  const args = ["rev-list", "--count", `--max-count=${most}`, "--ignore-missing", ...range];
  const output = await readHistory(repository, args, reader);
  return output === null ? null : Number(output);
}

/** The nearest checkout that `path` is in, links resolved; null if there is none. */
export function checkoutAround(path: string): string | null {
  if (existsSync(join(path, ".git"))) return realpathSync(path);
  return path === dirname(path) ? null : checkoutAround(dirname(path));
}

/** The path of a file relative to the checkout that it is in, links resolved; null if it is missing, or elsewhere. */
export function pathIn(root: string, path: string): string | null {
  const found = attempt(() => relative(root, realpathSync(path)), "..");
  return /^\.\.(?:\/|$)|\n/.test(found) ? null : found;
}

/** Looks at a checkout as its owner: its settings may name programs, which root must not start. Paths in `args` are no patterns. */
export function lookAt(
  root: string,
  args: readonly string[],
  { env, ...options }: GitReader & Omit<GitOptions, "user">,
): Promise<CommandEnding> {
  const { uid, gid } = statSync(root);
  const user = ownUid() === 0 && uid !== 0 ? readUser(uid, gid) : null;
  const home = user === null ? {} : { HOME: user.home, XDG_CONFIG_HOME: undefined };
  const quiet = { GIT_OPTIONAL_LOCKS: "0", GIT_NO_LAZY_FETCH: "1", GIT_LITERAL_PATHSPECS: "1" };
  const settings = ["-c", "safe.directory=*", "-c", "core.fsmonitor=false"];
  return runGit(root, [...settings, ...args], { ...options, user, env: { ...env, ...home, ...quiet } });
}

/** The environment in which git ignores replaced objects of a repository, which would be other commits with the same id. */
export function withoutReplacements<Env extends NodeJS.ProcessEnv>(env: Env) {
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
  { env }: { readonly env: NodeJS.ProcessEnv },
): Promise<string | null> {
  using scratch = makeScratch();
  const path = join(scratch.path, "before");
  writeFileSync(path, before);
  // What a terminal shows is cleaned of control sequences, so those of git too.
  const args = ["diff", "--no-index", "--no-ext-diff", "--color=never", "--", path, "-"];
  const ending = await runGit(scratch.path, args, { env, input: after });
  // 1 means that they differ.
  if (ending.kind !== "exited" || ending.code > 1) return null;
  const begin = ending.output.search(/^@@ /m);
  return begin < 0 ? "" : `--- ${name}\n+++ ${name}\n${ending.output.slice(begin)}`;
}

/** The checkout of a project, and as whom git works in it. */
export interface Checkout {
  readonly repoPath: string;
  readonly environment: Readonly<Record<string, string>>;
  /** null: the user of this process */
  readonly user: SystemUser | null;
  /** Redacts what git prints: it may print the URL of the remote, with its password. */
  readonly redactor: () => { readonly text: (text: string) => string };
}

/** What the remote of a repository answered: the commit that a branch is at, or why that is not known. */
export type RemoteHead =
  | { readonly kind: "head"; readonly commit: string }
  | { readonly kind: "unknown"; readonly detail: string }
  /** The repository has no remote, or is none. */
  | { readonly kind: "none"; readonly detail: string };

const usualAskMs = 30_000;

/** Whether `repoPath` is a git checkout, without a question to git. */
export function isRepository({ repoPath, environment }: Checkout): boolean {
  const isThere = lstatSync(join(repoPath, ".git"), { throwIfNoEntry: false }) !== undefined;
  return isThere || Boolean(environment.GIT_DIR);
}

/**
 * Asks the remote of the repository which commit `ref` is at, with the credentials that the script would use. At the
 * time-out, git is killed with the programs that it started (ssh, git-remote-https).
 */
export async function readRemoteHead(
  checkout: Checkout,
  ref: string,
  { timeoutMs = usualAskMs, signal }: { readonly timeoutMs?: number; readonly signal?: AbortSignal } = {},
): Promise<RemoteHead> {
  const { repoPath, environment: env, user } = checkout;
  if (!isRepository(checkout)) return { kind: "none", detail: `${repoPath} is not a git repository.` };
  const remote = remoteOf(env);
  const ending = await runGit(repoPath, ["ls-remote", "--", remote, ref], { env, user, timeoutMs, signal });
  if (hasSucceeded(ending)) {
    // Git matches the ends of names: for `refs/heads/main` it also lists `refs/heads/a/refs/heads/main`.
    const rows = ending.output.split("\n").map((row) => row.split("\t"));
    const [commit = ""] = rows.find(([, name]) => name === ref) ?? [];
    if (isFullCommit(commit)) return { kind: "head", commit };
    return { kind: "unknown", detail: `the remote has no ${ref}.` };
  }
  if (await isMissing(checkout, remote))
    return { kind: "none", detail: `${repoPath} has no remote ${remote}.` };
  const isLate = ending.kind === "timed_out";
  const reason = isLate ? `the remote did not answer within ${timeoutMs / 1_000} s` : reasonOf(ending);
  const detail = `git ls-remote failed in ${repoPath}: ${checkout.redactor().text(reason)}.`;
  return { kind: "unknown", detail };
}

const noSuchRemote = 2;

async function isMissing({ repoPath, environment: env, user }: Checkout, remote: string): Promise<boolean> {
  if (!isRemoteName(remote)) return false;
  const ending = await runGit(repoPath, ["remote", "get-url", remote], { env, user });
  return ending.kind === "exited" && ending.code === noSuchRemote;
}

/** Whether this names a remote; else it is an address. */
export function isRemoteName(remote: string): boolean {
  return /^[\w.-]+$/.test(remote);
}

/** The remote that examples/deploy.sh pulls from, by name or address: its variable, if DEPLOY_ENV passes it. */
export function remoteOf(env: NodeJS.ProcessEnv): string {
  return env.DEPLOY_REMOTE || "origin";
}

export const fetchTimeoutMs = 10 * 60_000;
/** The longest time in which git reports no progress. */
const fetchSilenceMs = 60_000;
/** Housekeeping would go on in the background. */
const noHousekeeping = ["-c", "gc.auto=0", "-c", "maintenance.auto=false"];
const withProgress = [
  "--progress",
  "--no-tags",
  "--no-recurse-submodules",
  "--no-write-fetch-head",
  "--refmap=",
];

/**
 * Fetches a branch and its history into the repository, without moving any ref there. It is ended after ten minutes, or
 * `silenceMs` without progress.
 *
 * @returns null, or a sentence on why that failed
 */
export async function fetchBranch(
  { repoPath, environment: env, user, redactor }: Checkout,
  ref: string,
  { signal, silenceMs = fetchSilenceMs }: { readonly signal: AbortSignal; readonly silenceMs?: number },
): Promise<string | null> {
  const args = [...noHousekeeping, "fetch", ...withProgress, "--", remoteOf(env), ref];
  const silent = new AbortController();
  const timer = setTimeout(() => silent.abort(), silenceMs);
  const ending = await runGit(repoPath, args, {
    env,
    user,
    timeoutMs: fetchTimeoutMs,
    signal: AbortSignal.any([signal, silent.signal]),
    onLine: () => timer.refresh(),
  });
  clearTimeout(timer);
  if (hasSucceeded(ending)) return null;
  const reason = silent.signal.aborted ? `no progress for ${silenceMs / 1_000} s` : reasonOf(ending);
  // Somebody ran git as root in a checkout of another user.
  const isForeign = ending.lastLines.some((line) => line.includes("insufficient permission for adding"));
  const cure = isForeign
    ? `Files in .git belong to another user. As root: chown --recursive --reference=${repoPath} ${repoPath}/.git`
    : "Check address, credentials and network.";
  return `git could not fetch ${ref}: ${redactor().text(reason)}. ${cure}`;
}

/** Why git failed, without a period at its end. */
export function reasonOf(ending: CommandEnding): string {
  if (ending.kind === "not_found") return "git is not installed";
  if (ending.kind === "too_long") return "the remote lists more than 1 MiB of refs of that name";
  return ending.kind === "exited" ? reasonIn(ending.lastLines) : ending.kind;
}

const maxReasonChars = 500;

/** What ssh and git say last. Below it, git gives advice that is the same for every fault. The remote may say megabytes. */
export function reasonIn(printed: readonly string[]): string {
  const lines = printed.filter((line) => line.trim() !== "");
  const advice = lines.findIndex((line) => line.startsWith("Please make sure you have the correct access"));
  const said = lines.slice(0, advice < 0 ? undefined : advice).slice(-2);
  const reason = said.map((line) => printable(line, maxReasonChars)).join(" ");
  return reason.replace(/\.$/, "") || "git gave no reason";
}

/** What git prints of the history; null if it fails. */
async function readHistory(
  repository: string,
  args: readonly string[],
  reader: GitReader,
): Promise<string | null> {
  const ending = await runHistory(repository, args, reader);
  return hasSucceeded(ending) ? ending.output.trim() : null;
}

/** Nothing is fetched, and it does not matter who owns the repository. */
function runHistory(
  repository: string,
  args: readonly string[],
  { env, user }: GitReader,
  maxOutputBytes?: number,
): Promise<CommandEnding> {
  const offline = { ...env, GIT_NO_LAZY_FETCH: "1" };
  return runGit(repository, ["-c", "safe.directory=*", ...args], { env: offline, user, maxOutputBytes });
}

function isFullCommit(text: string): boolean {
  return /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text);
}

/** The URL of a git remote, in parts. */
export interface GitRemoteUrl {
  /** The URL without its credentials. */
  readonly text: string;
  /** `file` is a path on this machine, or a URL with another scheme. */
  readonly scheme: "ssh" | "https" | "http" | "git" | "file";
  readonly user: string | null;
  /** As it is written, an IPv6 address without its brackets; null for `file`. */
  readonly host: string | null;
  readonly port: number | null;
  /** Without the slash at its start: `octo/app.git`. */
  readonly path: string;
}

/** Reads `git@host:path`, `ssh://…`, `https://…`, `git://…` and paths, as git does. */
export function parseGitRemoteUrl(given: string): GitRemoteUrl {
  const text = withoutCredentials(given.trim());
  const [, scheme = "ssh", authority, rest = ""] =
    /^(?:git\+)?(ssh|https?|git):\/\/([^/]*)\/(.*)$/i.exec(given.trim()) ?? [];
  const short = /^([^/:\s[]*(?:\[[^\]/\s]+\])?):(?!\/\/)\/?(.*)$/;
  const [, place = authority, path = rest] = authority === undefined ? (short.exec(given.trim()) ?? []) : [];
  const userEnd = place?.lastIndexOf("@") ?? -1;
  const [, host, port] = /^(\[[^\]]+\]|[^:[\]]+)(?::(\d+))?$/.exec(place?.slice(userEnd + 1) ?? "") ?? [];
  if (host === undefined) return { text, scheme: "file", user: null, host: null, port: null, path: text };
  return {
    text,
    scheme: scheme.toLowerCase() as GitRemoteUrl["scheme"],
    user: userEnd === -1 ? null : (place?.slice(0, userEnd).split(":")[0] ?? null),
    host: host.replace(/^\[|\]$/g, ""),
    port: port ? Number(port) : null,
    path,
  };
}

/** Replaces the credentials of every URL in `text`: a token can be the user's name or the password. The user of `ssh://git@` stays. */
export function withoutCredentials(text: string): string {
  return text.replaceAll(/(https?:\/\/|:\/\/(?=[^/\s@]*:))[^/\s]*@/gi, "$1…@");
}
