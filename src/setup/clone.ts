import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { HostedRepository } from "#config/git-hosts";
import { untilRight } from "#platform/async";
import { parseGitRemoteUrl } from "#platform/git";
import { hasSucceeded } from "#platform/run-command";
import { CommandError } from "#problems";
import type { ConnectScreen } from "./connect.ts";
import {
  askRemote,
  asOwner,
  deployKeyTitle,
  gitAsOwner,
  giveDeployKey,
  makeDeployKey,
} from "./deploy-key.ts";
import { hostApis, openRepository } from "./host-apis.ts";

export interface CloneOptions {
  /** What git clones: `git@github.com:octo/shop.git`. */
  readonly remote: string;
  readonly directory: string;
  /** Where the git host will send the pushes: it names the key there. */
  readonly url: URL;
  /** The repository at its host; null: its host has no API that Hotpush knows. */
  readonly repository: HostedRepository | null;
}

/** Addresses of a git host, without what git would take for an option or another program. */
const remotePattern = /^(?:(?:ssh|https):\/\/|[\w.+-]+@)[\w.:@/~+%[\]-]+$/;
const fetchTimeoutMs = 600_000;
/** The exit code that says: a person adds the deploy key, then the same command goes on. */
export const needsKey = 75;
/** A host may need a moment until a new key counts. */
const keyCountsWithinMs = 5_000;
const pauseMs = 1_000;

/** Whether git may be given this as the address of a repository. */
export function isRemote(text: string): boolean {
  return remotePattern.test(text) && !text.startsWith("-");
}

/**
 * Clones a repository with a deploy key of its own. Where an earlier run was interrupted, this one goes on; a checkout of the same
 * repository is left as it is.
 *
 * @returns the exit code: `needsKey` if there is no token, and the key was shown instead
 * @throws CommandError if something else is in the directory, or git cannot clone it
 */
export async function clone(options: CloneOptions, screen: ConnectScreen): Promise<number> {
  const { remote, directory } = options;
  await prepare(directory, remote);
  const isSsh = parseGitRemoteUrl(remote).scheme === "ssh";
  if (isSsh && !(await giveAccess(options, screen))) return needsKey;
  if ((await gitAsOwner(directory, "rev-parse", "--verify", "--quiet", "HEAD")) !== null) {
    screen.say(`${directory} is a checkout of this repository.`);
    return 0;
  }
  await git(directory, "fetch", "--quiet", "origin");
  await git(directory, "remote", "set-head", "origin", "--auto");
  const head = await gitAsOwner(directory, "symbolic-ref", "--short", "refs/remotes/origin/HEAD");
  const branch = head?.replace(/^origin\//, "");
  if (!branch) throw new CommandError(`${remote} has no commit yet. Push one, and run this again.`);
  await git(directory, "checkout", "--quiet", "-B", branch, "--track", `origin/${branch}`);
  screen.say(`${directory} has ${branch} of ${remote}.`);
  return 0;
}

async function prepare(directory: string, remote: string): Promise<void> {
  const isThere = existsSync(join(directory, ".git"));
  if (!isThere && existsSync(directory) && readdirSync(directory).length > 0)
    throw new CommandError(`${directory} has other files in it. Clone into another directory.`);
  mkdirSync(directory, { recursive: true });
  // In one that is there, this changes nothing.
  await git(directory, "init", "--quiet");
  const present = await gitAsOwner(directory, "remote", "get-url", "origin");
  if (present === null) await git(directory, "remote", "add", "origin", remote);
  else if (present !== remote)
    throw new CommandError(
      `${directory} is a checkout of ${present}. Clone ${remote} into another directory.`,
    );
}

/** @returns false if a person adds the key @throws CommandError if git cannot read the remote, whatever is done for it */
async function giveAccess(
  { directory, url, repository }: CloneOptions,
  screen: ConnectScreen,
): Promise<boolean> {
  const refusal = await askRemote(directory);
  if (hasSucceeded(refusal)) return true;
  if (refusal.lastLines.some((line) => line.includes("Host key verification failed")))
    throw new CommandError(
      `The key of the git host is not known here, or has changed. Compare it with the one that the host publishes, and take it into ~/.ssh/known_hosts. git says: ${refusal.lastLines.join(" ")}`,
    );
  const title = deployKeyTitle(url);
  const token = repository && (await screen.readToken(repository, hostApis[repository.host].token));
  if (repository === null || token === null) {
    const place = repository === null ? "" : `: ${repository.url.href}${hostApis[repository.host].keysPage}`;
    screen.say(`git may not read the repository yet. Add this deploy key at the git host, read-only${place}`);
    screen.showKey(await makeDeployKey(directory, title));
    return false;
  }
  const host = openRepository({ ...repository, token }, "");
  screen.say(await giveDeployKey(directory, title, host, await host.listKeys()));
  const isRefused = async () => (hasSucceeded(await askRemote(directory)) ? null : "refused");
  if ((await untilRight(isRefused, { withinMs: keyCountsWithinMs, pauseMs })) === null) return true;
  throw new CommandError("The deploy key is at the git host, and git still may not read. Run this again.");
}

async function git(directory: string, ...args: readonly string[]): Promise<void> {
  const ending = await asOwner(directory, ["git", "-C", directory, ...args], fetchTimeoutMs);
  if (hasSucceeded(ending)) return;
  const why = ending.lastLines.join(" ") || ending.kind;
  throw new CommandError(`git ${args[0]} failed in ${directory}: ${why}. Run this again when that is fixed.`);
}
