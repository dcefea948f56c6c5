import { basename } from "node:path";
import { removeForeignFile } from "#platform/foreign-files";
import { deployKeyPath, neverAsk, sshWithKey } from "#platform/git";
import { type Argv, type CommandEnding, hasSucceeded, runCommand } from "#platform/run-command";
import { CommandError } from "#problems";
import { ownerOf } from "#runner/script";
import type { HostedKey, RepositoryAtHost } from "./host-apis.ts";

const usualTimeoutMs = 20_000;
const setting = "core.sshCommand";

/** What the key of a server's project is called at the git host: it says whose it is, also if its private half was lost. */
export function deployKeyTitle(webhook: URL): string {
  return `Hotpush ${webhook.href}`;
}

/**
 * Gives the checkout `root` a key of its own, as its owner, tells git to use it, and adds it to the repository at its host under
 * `title`, read-only. The checkout's key is kept, unless it is that of another server from which the checkout was copied. Before
 * the host has the new key, no other is touched in the checkout; it may be killed at any time.
 *
 * @param keys those that the host has
 * @returns what was done, for a person
 * @throws CommandError if the host refuses, there is no ssh-keygen, or the checkout has no directory `.git`
 */
export async function giveDeployKey(
  root: string,
  title: string,
  host: RepositoryAtHost,
  keys: readonly HostedKey[],
): Promise<string> {
  const present = await readDeployKey(root);
  const copied = keys.find((one) => isSameKey(one.key, present) && isOfOther(one, title));
  const isNew = present === null || copied !== undefined;
  if (!isNew) removeFiles(newKeyPath(root));
  const key = isNew ? await generate(root, title) : present;
  const own = ownKeys(keys, title, key);
  const right = own.find((one) => one.isReadOnly && one.title === title && isSameKey(one.key, key));
  // First, because a host may refuse a second key with the same title.
  for (const one of own) if (one !== right) await host.removeKey(one.id);
  if (right === undefined) await host.addKey(title, key);
  await useDeployKey(root);
  if (right !== undefined) return "The deploy key is right.";
  const done = `The deploy key is ${own.length > 0 ? "replaced" : "added"}: with it, this server may read this repository, and nothing else.`;
  return copied === undefined
    ? done
    : `${done} The checkout had that of another server, which stays at the host: ${copied.title}.`;
}

/** Gives the checkout `root` a key of its own, if it has none. @returns its public half, which a person adds at the host */
export async function makeDeployKey(root: string, title: string): Promise<string> {
  const key = (await readDeployKey(root)) ?? (await generate(root, title));
  await useDeployKey(root);
  return key;
}

/** Of the keys at a host, those of the checkout with this title and `key`. */
export function ownKeys(keys: readonly HostedKey[], title: string, key: string | null) {
  return keys.filter((one) => one.title === title || (isSameKey(one.key, key) && !isOfOther(one, title)));
}

function isOfOther(one: HostedKey, title: string): boolean {
  return one.title !== title && /^Hotpush https?:/.test(one.title);
}

/** Whether two lines of `id_ed25519.pub` are the same key, whatever their comments are. */
function isSameKey(one: string, other: string | null): boolean {
  const plain = (line: string) => line.trim().split(/\s+/).slice(0, 2).join(" ");
  return other !== null && plain(one) === plain(other);
}

/** Makes a key beside the one in use. @returns its public half */
async function generate(root: string, title: string): Promise<string> {
  removeFiles(newKeyPath(root));
  const argv = ["-q", "-t", "ed25519", "-N", "", "-C", title, "-f", newKeyPath(root)];
  const ending = await asOwner(root, ["ssh-keygen", ...argv]);
  const key = await publicHalf(root, newKeyPath(root));
  if (key !== null) return key;
  const why = ending.kind === "not_found" ? "ssh-keygen is not installed" : ending.lastLines.join(" ");
  throw new CommandError(
    `No deploy key could be made in ${root}/.git: ${why}. It takes OpenSSH's client (Debian: apt-get install openssh-client).`,
  );
}

/** From now on git uses the key that `generate` has made, or the one that was there. */
async function useDeployKey(root: string): Promise<void> {
  // ssh believes the public half that lies beside a key. Without a new one, nothing is moved.
  for (const half of [".pub", ""])
    await asOwner(root, ["mv", "-f", newKeyPath(root) + half, deployKeyPath(root) + half]);
  // The service looks for the file; this is for people who type git here. What they have set stays.
  const used = await gitAsOwner(root, "config", "--get", setting);
  if (used === null || used.includes(basename(deployKeyPath(root))))
    await gitAsOwner(root, "config", setting, `ssh ${sshWithKey(deployKeyPath(root))}`);
}

function newKeyPath(root: string): string {
  return `${deployKeyPath(root)}.new`;
}

function removeFiles(path: string): void {
  for (const one of [path, `${path}.pub`]) removeForeignFile(one);
}

/** The public half of the key of the checkout `root`; null if it has none that can be used. */
export function readDeployKey(root: string): Promise<string | null> {
  return publicHalf(root, deployKeyPath(root));
}

async function publicHalf(root: string, path: string): Promise<string | null> {
  const ending = await asOwner(root, ["ssh-keygen", "-y", "-f", path]);
  return hasSucceeded(ending) ? ending.output.trim() : null;
}

/** Takes the key of the checkout `root` away, if it has one, and what `giveDeployKey` told git. */
export async function removeDeployKey(root: string): Promise<void> {
  const used = await gitAsOwner(root, "config", "--get", setting);
  if (used?.includes(sshWithKey(deployKeyPath(root)))) await gitAsOwner(root, "config", "--unset", setting);
  for (const path of [deployKeyPath(root), newKeyPath(root)]) removeFiles(path);
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
