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
    if (present === null) removeKeyFiles(root);
    throw error;
  }
  await useDeployKey(root);
  if (right !== undefined) return "The deploy key is right.";
  return `The deploy key is ${own.length > 0 ? "replaced" : "added"}: with it, this server may read this repository, and nothing else.`;
}

/** Gives the checkout `root` a key of its own, if it has none. @returns its public half, which a person adds at the host */
export async function makeDeployKey(root: string, title: string): Promise<string> {
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
  removeKeyFiles(root);
  const argv = ["-q", "-t", "ed25519", "-N", "", "-C", title, "-f", deployKeyPath(root)];
  const ending = await asOwner(root, ["ssh-keygen", ...argv]);
  const key = await readDeployKey(root);
  if (key !== null) return key;
  const why = ending.kind === "not_found" ? "ssh-keygen is not installed" : ending.lastLines.join(" ");
  throw new CommandError(
    `No deploy key could be made in ${root}/.git: ${why}. It takes OpenSSH's client (Debian: apt-get install openssh-client).`,
  );
}

/** The service looks for the file; this is for people who type git here. What they have set stays. */
async function useDeployKey(root: string): Promise<void> {
  const used = await gitAsOwner(root, "config", "--get", setting);
  if (used === null || used.includes(basename(deployKeyPath(root))))
    await gitAsOwner(root, "config", setting, `ssh ${sshWithKey(deployKeyPath(root))}`);
}

function removeKeyFiles(root: string): void {
  for (const half of ["", ".pub"]) removeForeignFile(deployKeyPath(root) + half);
}

/** The public half of the key of the checkout `root`; null if it has none that can be used. */
export async function readDeployKey(root: string): Promise<string | null> {
  const ending = await asOwner(root, ["ssh-keygen", "-y", "-f", deployKeyPath(root)]);
  return hasSucceeded(ending) ? ending.output.trim() : null;
}

/** Takes the key of the checkout `root` away, if it has one, and what `giveDeployKey` told git. */
export async function removeDeployKey(root: string): Promise<void> {
  const used = await gitAsOwner(root, "config", "--get", setting);
  if (used?.includes(sshWithKey(deployKeyPath(root)))) await gitAsOwner(root, "config", "--unset", setting);
  removeKeyFiles(root);
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
