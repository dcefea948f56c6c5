/** A checkout's access to its repository: the clone, and the deploy key with which it is read. */
import { createHash } from "node:crypto";
import { existsSync, lstatSync, mkdirSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { HostedRepository } from "#config/git-hosts";
import type { Secret } from "#config/secret";
import { branches } from "#config/settings";
import { untilRight } from "#platform/async";
import { attempt } from "#platform/files";
import { deployKeyPath, neverAsk, parseGitRemoteUrl, reasonOf, sshWithKey } from "#platform/git";
import { type Argv, type CommandEnding, hasSucceeded, runCommand } from "#platform/run-command";
import { CommandError } from "#problems";
import { ownerOf } from "#runner/script";
import { canBeMounted } from "./compose-paths.ts";
import { type HostedKey, hostApis, openRepository, type RepositoryAtHost } from "./host-apis.ts";
import { real } from "./server.ts";

/** How a person is asked for a token, and told what is done. */
export interface AccessScreen {
  /** Gets the token; null: there is none. */
  readonly readToken: (repository: HostedRepository, needs: string) => Promise<Secret | null>;
  /** Shows a line that a person copies. */
  readonly showKey: (key: string) => void;
  readonly say: (text: string) => void;
}

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
/** The exit code that says: a person does something at the git host, or waits for it; then the same command goes on. */
export const unfinished = 75;
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
 * @returns the exit code: `unfinished` if there is no token, and the key was shown instead
 * @throws CommandError if something else is in the directory, or git cannot clone it
 */
export async function clone(options: CloneOptions, screen: AccessScreen): Promise<number> {
  const { remote, directory } = options;
  await prepare(directory, remote);
  const isSsh = parseGitRemoteUrl(remote).scheme === "ssh";
  if (isSsh && !(await giveAccess(options, screen))) return unfinished;
  if ((await gitAsOwner(directory, "rev-parse", "--verify", "--quiet", "HEAD")) !== null) {
    screen.say(`${directory} is a checkout of this repository.`);
    return 0;
  }
  await takeObjectFormat(directory);
  await git(directory, "fetch", "--quiet", "origin");
  const branch = await chooseBranch(directory, remote);
  await git(directory, "checkout", "--quiet", "-B", branch, "--track", `origin/${branch}`);
  screen.say(`${directory} has ${branch} of ${remote}.`);
  return 0;
}

/**
 * The branch that the remote's HEAD names; if it has none, or names a missing one, the only one of main and master.
 *
 * @throws CommandError if that is not clear
 */
async function chooseBranch(directory: string, remote: string): Promise<string> {
  await gitAsOwner(directory, "remote", "set-head", "origin", "--auto");
  const head = await gitAsOwner(directory, "symbolic-ref", "--short", "refs/remotes/origin/HEAD");
  if (head) return head.replace(/^origin\//, "");
  const listed = await gitAsOwner(directory, "for-each-ref", "--format=%(refname:lstrip=3)", "refs/remotes");
  const names = (listed ?? "").split("\n").filter(Boolean);
  const [only, other] = branches.filter((branch) => names.includes(branch));
  if (only && !other) return only;
  if (names.length === 0)
    throw new CommandError(`${remote} has no commit yet. Push one, and run this again.`);
  throw new CommandError(
    `${remote} has no default branch: its HEAD names none of ${names.join(", ")}. Choose main or master there, and run this again.`,
  );
}

async function prepare(directory: string, remote: string): Promise<void> {
  const isThere = existsSync(join(directory, ".git"));
  // An app's own settings may be there before it is.
  if (!isThere && existsSync(directory) && readdirSync(directory).some((name) => name !== ".env"))
    throw new CommandError(`${directory} has other files in it. Clone into another directory.`);
  mkdirSync(directory, { recursive: true });
  // In one that is there, this changes nothing.
  await git(directory, "init", "--quiet");
  const present = await gitAsOwner(directory, "remote", "get-url", "origin");
  if (present === null) await git(directory, "remote", "add", "origin", remote);
  if (present === null || present === remote) return;
  // A first run with an address that cannot be read must not block the right one.
  if ((await gitAsOwner(directory, "rev-parse", "--verify", "--quiet", "HEAD")) !== null)
    throw new CommandError(
      `${directory} is a checkout of ${present}. Clone ${remote} into another directory (hotpush up: --project <name>).`,
    );
  await git(directory, "remote", "set-url", "origin", remote);
}

/** Gives the empty repository the object format of its remote (SHA-1, SHA-256). `git init` refuses to change it. */
async function takeObjectFormat(directory: string): Promise<void> {
  const refs = await gitAsOwner(directory, "ls-remote", "--", "origin");
  const [commit = ""] = refs?.split("\t", 1) ?? [];
  const format = commit.length === 64 ? "sha256" : "sha1";
  if (!commit || (await gitAsOwner(directory, "rev-parse", "--show-object-format")) === format) return;
  await git(directory, "config", "core.repositoryFormatVersion", "1");
  await git(directory, "config", "extensions.objectFormat", format);
}

/** @returns false if a person adds the key @throws CommandError if git cannot read the remote, whatever is done for it */
async function giveAccess(
  { directory, url, repository }: CloneOptions,
  screen: AccessScreen,
): Promise<boolean> {
  const refusal = await askRemote(directory);
  if (hasSucceeded(refusal)) return true;
  if (refusal.lastLines.some((line) => line.includes("Host key verification failed")))
    throw new CommandError(
      `The key of the git host is not known here, or has changed. Compare it with the one that the host publishes, and take it into ~/.ssh/known_hosts.${saidBy(refusal)}`,
    );
  const title = deployKeyTitle(url);
  const token = repository && (await screen.readToken(repository, hostApis[repository.host].token));
  if (repository === null || token === null) {
    const place = repository === null ? "" : `: ${repository.url.href}${hostApis[repository.host].keysPage}`;
    screen.say(`git cannot read the repository yet.${saidBy(refusal)}`);
    screen.say(`If a key is missing, add this deploy key at the git host, read-only${place}`);
    screen.showKey(await makeDeployKey(directory, title));
    return false;
  }
  const host = openRepository({ ...repository, token }, "");
  screen.say(await giveDeployKey(directory, title, host, await host.listKeys()));
  const findRefusal = async () => {
    const again = await askRemote(directory);
    return hasSucceeded(again) ? null : again;
  };
  const left = await untilRight(findRefusal, { withinMs: keyCountsWithinMs, pauseMs });
  if (left === null) return true;
  throw new CommandError(
    `The deploy key is at the git host, and git still cannot read.${saidBy(left)} Run this again.`,
  );
}

/** Its own words say what a key does not change: a name that is not found, a port that nobody answers. */
function saidBy(refusal: CommandEnding): string {
  return ` git says: ${reasonOf(refusal)}.`;
}

async function git(directory: string, ...args: readonly string[]): Promise<void> {
  const ending = await asOwner(directory, ["git", "-C", directory, ...args], fetchTimeoutMs);
  if (hasSucceeded(ending)) return;
  throw new CommandError(
    `git ${args[0]} failed in ${directory}: ${reasonOf(ending)}. Run this again when that is fixed.`,
  );
}

const usualTimeoutMs = 20_000;
const setting = "core.sshCommand";

/** What the key of a server's project is called at the git host: it says whose it is, also if its private half was lost. */
export function deployKeyTitle(webhook: URL): string {
  return `Hotpush ${webhook.href}`;
}

/**
 * Gives the checkout `root` a key of its own, as its owner, tells git to use it, and adds it to the repository at its host under
 * `title`, read-only. A key that the checkout has is kept. It may be killed at any time.
 *
 * @param keys those that the host has
 * @returns what was done, for a person
 * @throws CommandError if the host refuses, or there is no ssh-keygen
 */
export async function giveDeployKey(
  root: string,
  title: string,
  host: RepositoryAtHost,
  keys: readonly HostedKey[],
): Promise<string> {
  await moveDeployKey(root);
  const present = await readDeployKey(root);
  const key = present ?? (await generate(root, title));
  const own = keys.filter((one) => one.title === title);
  // A copy of the checkout, or one whose address was another, has it there under the title of then.
  const right = keys.find((one) => one.isReadOnly && isSameKey(one.key, key));
  try {
    // First, because a host may refuse a second key with the same title.
    for (const one of own) if (one !== right) await host.removeKey(one.id);
    if (right === undefined) await host.addKey(title, key);
  } catch (error) {
    // Git would use a key that the host does not have.
    if (present === null) await removeKeyFiles(root);
    throw error;
  }
  await useDeployKey(root);
  if (right !== undefined) return "The deploy key is right.";
  return `The deploy key is ${own.length > 0 ? "replaced" : "added"}: with it, this server may read this repository, and nothing else.`;
}

/** Gives the checkout `root` a key of its own, if it has none. @returns its public half, which a person adds at the host */
export async function makeDeployKey(root: string, title: string): Promise<string> {
  await moveDeployKey(root);
  const key = (await readDeployKey(root)) ?? (await generate(root, title));
  await useDeployKey(root);
  return key;
}

/** Whether two lines of `id_ed25519.pub` are the same key, whatever their comments are. */
function isSameKey(one: string, other: string): boolean {
  const plain = (line: string) => line.trim().split(/\s+/).slice(0, 2).join(" ");
  return plain(one) === plain(other);
}

/** @returns the public half of the new key */
async function generate(root: string, title: string): Promise<string> {
  await removeKeyFiles(root);
  const link = deployKeyPath(root);
  const wanted = keyFileOf(root);
  const isInHome =
    wanted !== link && hasSucceeded(await asOwner(root, ["mkdir", "-p", "-m", "700", dirname(wanted)]));
  const file = isInHome ? wanted : link;
  const argv = ["-q", "-t", "ed25519", "-N", "", "-C", title, "-f", file];
  const ending = await asOwner(root, ["ssh-keygen", ...argv]);
  if (isInHome) await asOwner(root, ["ln", "-sfn", file, link]);
  const key = await readDeployKey(root);
  if (key !== null) return key;
  const why = ending.kind === "not_found" ? "ssh-keygen is not installed" : ending.lastLines.join(" ");
  throw new CommandError(
    `No deploy key could be made at ${file}: ${why}. It takes OpenSSH's client (Debian: apt-get install openssh-client).`,
  );
}

/** In the checkout's own settings, so that submodules and other repositories get their owner's keys. What people have set stays. */
async function useDeployKey(root: string): Promise<void> {
  const used = await gitAsOwner(root, "config", "--get", setting);
  if (used === null || used.includes(basename(deployKeyPath(root))))
    await gitAsOwner(root, "config", setting, `ssh -o BatchMode=yes ${sshWithKey(deployKeyPath(root))}`);
}

/** The link may lead to the key of the checkout that this one was copied from, which stays. */
async function removeKeyFiles(root: string): Promise<void> {
  const paths = [keyFileOf(root), deployKeyPath(root)].flatMap((path) => [path, `${path}.pub`]);
  await asOwner(root, ["rm", "-f", ...paths]);
}

/**
 * The private half of the key of the checkout `root`: in the home of its owner. It is in `.git` if that home is none that `run` can
 * have, or would put the key into the work tree, from which images are built.
 */
function keyFileOf(root: string): string {
  const home = real(ownerOf(root)?.home ?? process.env.HOME ?? "/");
  const directory = real(join(home, ".ssh"));
  const isInCheckout = `${directory}/`.startsWith(`${real(root)}/`);
  if (isInCheckout || !canBeMounted(home)) return deployKeyPath(root);
  const id = createHash("sha256").update(root).digest("hex").slice(0, 8);
  return join(home, ".ssh", `hotpush-${basename(root)}-${id}`);
}

/**
 * Moves a deploy key that an earlier version put into `.git` to its owner's home. If that fails, it stays where it is; git can read it
 * at any time.
 */
export async function moveDeployKey(root: string): Promise<void> {
  const path = deployKeyPath(root);
  if (!attempt(() => lstatSync(path).isFile(), false)) return;
  const file = keyFileOf(root);
  if (file === path) return;
  for (const argv of [
    ["mkdir", "-p", "-m", "700", dirname(file)],
    ["cp", "-p", path, file],
    ["ln", "-sfn", file, path],
    ["rm", "-f", `${path}.pub`],
  ] as const)
    if (!hasSucceeded(await asOwner(root, argv))) return;
}

/** Whether the checkout `root` has a deploy key that its owner cannot read, such as one in the home of an earlier owner. */
export async function hasLostDeployKey(root: string): Promise<boolean> {
  const isThere = lstatSync(deployKeyPath(root), { throwIfNoEntry: false }) !== undefined;
  return isThere && !hasSucceeded(await asOwner(root, ["test", "-r", deployKeyPath(root)]));
}

/** The public half of the key of the checkout `root`; null if it has none that can be used. */
export async function readDeployKey(root: string): Promise<string | null> {
  const ending = await asOwner(root, ["ssh-keygen", "-y", "-f", deployKeyPath(root)]);
  return hasSucceeded(ending) ? ending.output.trim() : null;
}

/** Takes the key of the checkout `root` away, if it has one, and what `giveDeployKey` told git. */
export async function removeDeployKey(root: string): Promise<void> {
  const used = await gitAsOwner(root, "config", "--get", setting);
  if (used?.includes(deployKeyPath(root))) await gitAsOwner(root, "config", "--unset", setting);
  await removeKeyFiles(root);
}

/** Asks the remote as the service will. */
export function askRemote(root: string): Promise<CommandEnding> {
  return asOwner(root, ["git", "-C", root, "ls-remote", "--", "origin", "HEAD"]);
}

/** Runs git in `root` as its owner. @returns its output, trimmed; null unless it exits with code 0 */
export async function gitAsOwner(root: string, ...args: readonly string[]): Promise<string | null> {
  const ending = await asOwner(root, ["git", "-C", root, ...args]);
  return hasSucceeded(ending) ? ending.output.trim() : null;
}

/** Runs a program as the owner of `root`, with nothing of the caller's: the owner's settings of git decide which programs it starts. */
export function asOwner(root: string, argv: Argv, timeoutMs = usualTimeoutMs): Promise<CommandEnding> {
  const user = ownerOf(root);
  const home = user?.home ?? process.env.HOME;
  const env = { PATH: process.env.PATH, HOME: home, LC_ALL: "C", ...neverAsk(root) };
  return runCommand({ argv, env, user, timeoutMs });
}
