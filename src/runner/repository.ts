import { constants, lstatSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Deployment, RemoteHead, Source } from "../deployments/deployment.ts";
import { isAllowed, kindOf, ownUid } from "../platform/files.ts";
import {
  type Commit,
  checkedOutCommit,
  type GitReader,
  isAncestor,
  readCommit,
  refusesOwner,
  runGit,
} from "../platform/git.ts";
import { printable } from "../platform/terminal/printable.ts";
import type { Problem } from "../problems.ts";
import type { CheckedScript, ProjectScript } from "./known-secrets.ts";
import { type RunDirectory, readCheckout, runDirectory } from "./run-directory.ts";

const longestSubject = 200;
const longestAuthor = 100;

/** Notes the HEAD of the repository before the script runs, empty if it has none. Never rejects: a note can be missing. */
export async function noteHead(
  { headPath }: RunDirectory,
  repoPath: string,
  reader: GitReader,
): Promise<void> {
  try {
    writeFileSync(headPath, (await checkedOutCommit(repoPath, reader)) ?? "", { mode: 0o600 });
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
  { repoPath: presentPath, environment: env, user }: ProjectScript,
  statePath: string,
  { id, trigger, commit }: Deployment,
  state: Deployment["state"],
): Promise<Source | null> {
  const directory = runDirectory(statePath, id);
  const repoPath = readCheckout(directory) ?? presentPath;
  const reader = { env, user };
  try {
    if (trigger === "rollback") return sourceOf(await readCommit(repoPath, commit, reader), null);
    const head = await readCommit(repoPath, "HEAD", reader);
    if (head === null) return null;
    const hasMoved = () => state === "succeeded" && readFileSync(directory.headPath, "utf8") !== head.id;
    const isItsWork = (await isAncestor(repoPath, commit, head.id, reader)) || hasMoved();
    return isItsWork ? sourceOf(head, head.id) : null;
  } catch {
    // The note is missing, or the machine is short of something: this is worth no more than an empty column.
    return null;
  }
}

/** What is recorded of a commit: cut to a bounded length, and printable. */
export function sourceOf(found: Commit | null, checkedOutCommit: string | null): Source | null {
  if (found === null) return null;
  const [subject, author] = [
    printable(found.subject, longestSubject),
    printable(found.author, longestAuthor),
  ];
  return { checkedOutCommit, subject: subject.trim() || null, author: author.trim() || null };
}

/**
 * Asks the remote of the repository which commit `ref` is at, with the credentials that the script would use. At the
 * time-out, git is killed with the programs that it started (ssh, git-remote-https).
 */
export async function readRemoteHead(
  { repoPath, environment: env, user, redactor }: ProjectScript,
  ref: string,
  { timeoutMs = 30_000, ...options }: { readonly timeoutMs?: number; readonly signal?: AbortSignal } = {},
): Promise<RemoteHead> {
  const args = ["ls-remote", "--", remoteOf(env), ref];
  const ending = await runGit(repoPath, args, { ...options, env, user, timeoutMs });
  if (ending.kind === "exited" && ending.code === 0) {
    const commit = commitOf(ending.output, ref);
    return commit === null
      ? { kind: "unknown", detail: `the remote has no ${ref}.` }
      : { kind: "head", commit };
  }
  const reason =
    ending.kind === "exited"
      ? ending.lastLines.at(-1) || "git gave no reason"
      : ending.kind === "not_found"
        ? "git is not installed"
        : `the remote did not answer within ${timeoutMs / 1_000} s`;
  // Git may print the URL of the remote, with its password.
  const detail = `git ls-remote failed in ${repoPath}: ${redactor().text(reason)}`;
  return { kind: "unknown", detail };
}

/** The remote that examples/deploy.sh pulls from: its variable, if DEPLOY_ENV passes it. */
export function remoteOf(env: Readonly<Record<string, string>>): string {
  return env.DEPLOY_REMOTE || "origin";
}

/** `git ls-remote` matches the ends of names: for `refs/heads/main` it also lists `refs/heads/a/refs/heads/main`. */
function commitOf(output: string, ref: string): string | null {
  const rows = output.split("\n").map((row) => row.split("\t"));
  return rows.find(([, name]) => name === ref)?.[0] ?? null;
}

/** What prevents a program from running in the repository directory, or null. */
export function checkRepository(repoPath: string): Problem | null {
  const entry = kindOf(repoPath);
  if (entry === "missing") {
    return {
      code: "repository_missing",
      detail: `REPO_PATH is ${repoPath}, which does not exist. Clone the repository there, mount it, or set REPO_PATH.`,
    };
  }
  if (entry === "inaccessible") return repositoryNotAccessible(repoPath);
  if (entry !== "directory") {
    return {
      code: "repository_not_a_directory",
      detail: `REPO_PATH is ${repoPath}, which is not a directory. Set it to the root of the repository.`,
    };
  }
  return isAllowed(repoPath, constants.R_OK | constants.X_OK) ? null : repositoryNotAccessible(repoPath);
}

function repositoryNotAccessible(repoPath: string): Problem {
  return {
    code: "repository_not_accessible",
    detail: `This user (uid ${ownUid()}) may not enter ${repoPath}. Run: chown -R ${ownUid()} ${repoPath}`,
  };
}

/**
 * Git does nothing in a repository of another user, unless its settings trust that repository. It is asked only if the
 * owner is another user.
 */
export async function checkOwnership({
  repoPath,
  environment: env,
  user,
}: CheckedScript): Promise<Problem | null> {
  const uid = user?.uid ?? ownUid();
  const owner = lstatSync(join(repoPath, ".git"), { throwIfNoEntry: false })?.uid;
  if (owner === undefined || (owner === uid && lstatSync(repoPath).uid === uid)) return null;
  // A machine that cannot start git now says nothing about the owner: starting the script fails by itself then.
  const ending = await runGit(repoPath, ["rev-parse", "--git-dir"], { env, user }).catch(() => null);
  const isRefused = ending?.kind === "exited" && refusesOwner(ending);
  if (!isRefused) return null;
  const detail = `${repoPath} belongs to the user with uid ${owner}, so git refuses to use it as this user (uid ${uid}). Run: chown -R ${uid} ${repoPath}; or, if you trust that user, run: git config --global --add safe.directory ${repoPath}`;
  return { code: "repository_dubious_ownership", detail };
}
