import { dirname, resolve } from "node:path";
import { type Branch, branches } from "../config/settings.ts";
import { type GitOptions, gitOutput, neverAsk, runGit } from "../platform/git.ts";
import { parseGitRemoteUrl, sshOverHttps } from "../platform/git-remote-url.ts";
import type { CommandEnding } from "../platform/run-command.ts";
import { SetupError } from "./setup-error.ts";

/** A git remote, read from its URL, without credentials. */
export interface GitRemote {
  /** Without a port: `github.com`. */
  readonly hostname: string;
  /** `owner/name`, or deeper if the host has groups in groups; without `.git`. */
  readonly path: string;
  readonly isSsh: boolean;
  /** The origin of its pages: that of an http or https URL; for ssh, https with the same name is a guess. */
  readonly origin: string;
}

/**
 * Runs git in `directory` for at most 10 s, without any question to a person.
 *
 * @returns its standard output, trimmed; null unless it exits with code 0
 */
export function git(directory: string, ...args: readonly string[]): Promise<string | null> {
  return gitOutput(directory, args, unattended());
}

/** Runs git as `git` does, for a caller that reports why it failed. */
export function tryGit(directory: string, ...args: readonly string[]): Promise<CommandEnding> {
  return runGit(directory, args, unattended());
}

/** The URL of the remote `origin` in `directory`, else of the first remote; null if there is none. */
export async function readRemoteUrl(directory: string): Promise<string | null> {
  const names = (await git(directory, "remote"))?.split("\n").filter(Boolean) ?? [];
  const name = names.includes("origin") ? "origin" : names[0];
  return name === undefined ? null : await git(directory, "remote", "get-url", name);
}

/**
 * The branch that the HEAD of the remote `origin` names, if it is one that Hotpush deploys. If the remote does not answer,
 * the branch that `git clone` found.
 */
export async function readRemoteBranch(directory: string): Promise<Branch | null> {
  const answer = await git(directory, "ls-remote", "--symref", "--", "origin", "HEAD");
  const [, name] = /^ref: refs\/heads\/(\S+)\tHEAD$/m.exec(answer ?? "") ?? [];
  const head = name ?? (await readClonedBranch(directory));
  return branches.find((branch) => branch === head) ?? null;
}

/**
 * Reads the URL of a remote: `git@host:owner/name.git`, `ssh://git@host:2222/owner/name`, `https://host/owner/name.git`.
 * An ssh alias that starts with a host's name (`github.com-shop:owner/name`, used for several deploy keys) counts as that
 * host.
 *
 * @returns null for a path on this machine, and for anything that is not the URL of a remote
 */
export function parseRemoteUrl(url: string): GitRemote | null {
  const { scheme, host, port, path } = parseGitRemoteUrl(url);
  const plain = decoded(path)
    .replace(/^[~/]+|\/+$/g, "")
    .replace(/\.git$/, "");
  if (host === null || plain === "" || /\s/.test(plain)) return null;
  const written = host.includes(":") ? `[${host}]` : host;
  if (scheme === "https" || scheme === "http") {
    const site = `${scheme}://${written}:${port ?? ""}`;
    if (!URL.canParse(site)) return null;
    const { hostname, origin } = new URL(site);
    return { hostname: usualName(hostname), path: plain, isSsh: false, origin };
  }
  const hostname = usualName(written.toLowerCase());
  return { hostname, path: plain, isSsh: scheme === "ssh", origin: `https://${hostname}` };
}

/**
 * Those of `names`, files in the root of a checkout, that are in the repository.
 *
 * @throws SetupError if git cannot list its files
 */
export async function findTracked(root: string, names: readonly string[]): Promise<readonly string[]> {
  const tracked = await git(root, "ls-files", "--", ...names);
  if (tracked !== null) return tracked.split("\n").filter(Boolean);
  throw new SetupError(`git cannot list the files of ${root}. Try: git -C ${root} ls-files`);
}

/** Those of `names`, files in the root of a checkout, that git does not ignore. */
export async function findUnignored(root: string, names: readonly string[]): Promise<readonly string[]> {
  const ignored = (await git(root, "check-ignore", "--", ...names))?.split("\n") ?? [];
  return names.filter((name) => !ignored.includes(name));
}

/** The directory of git's own `info/exclude` of a checkout, which may be a linked work tree. */
export async function gitDirectory(root: string): Promise<string> {
  const path = await git(root, "rev-parse", "--git-path", "info/exclude");
  return dirname(dirname(resolve(root, path ?? ".git/info/exclude")));
}

function unattended(): GitOptions {
  const ssh = process.env.GIT_SSH_COMMAND || neverAsk.GIT_SSH_COMMAND;
  return { env: { ...process.env, ...neverAsk, GIT_SSH_COMMAND: ssh, LC_ALL: "C" } };
}

async function readClonedBranch(directory: string): Promise<string | undefined> {
  const ref = await git(directory, "symbolic-ref", "--quiet", "refs/remotes/origin/HEAD");
  return ref?.replace(/^refs\/remotes\/origin\//, "");
}

function usualName(name: string): string {
  const alias = /^((?:github|gitlab)\.com|bitbucket\.org|codeberg\.org)[-_.]/.exec(name);
  const [usual] = [...sshOverHttps].find(([, other]) => other === name) ?? [];
  return alias?.[1] ?? usual ?? name;
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
