import { statSync } from "node:fs";
import { join } from "node:path";
import { removeForeignFile } from "#platform/foreign-files";
import { deployKeyPath, gitOutput, neverAsk, sshWithKey } from "#platform/git";
import { type Argv, hasSucceeded, runCommand } from "#platform/run-command";
import { CommandError } from "#problems";
import { ownerOf } from "#runner/script";

const timeoutMs = 20_000;
const setting = "core.sshCommand";

/**
 * Gives the checkout `root` a key of its own, as its owner, and tells git to use it. One that is there is kept, unless ssh-keygen was
 * interrupted while it wrote it.
 *
 * @returns its public half
 * @throws CommandError if there is no ssh-keygen, or the checkout has no directory `.git` to put it in
 */
export async function makeDeployKey(root: string, title: string): Promise<string> {
  if (!hasOwnGitDirectory(root))
    throw new CommandError(
      `${root} shares its .git with another checkout, so it gets no key of its own. Clone the repository, or run this with --no-key.`,
    );
  const key = (await readDeployKey(root)) ?? (await generate(root, title));
  // The service looks for the file; this is for people who type git here. What they have set stays.
  if ((await gitAsOwner(root, "config", "--get", setting)) === null)
    await gitAsOwner(root, "config", setting, `ssh ${sshWithKey(deployKeyPath(root))}`);
  return key;
}

/** Whether the checkout is no worktree or submodule, whose `.git` is a file. */
function hasOwnGitDirectory(root: string): boolean {
  return statSync(join(root, ".git"), { throwIfNoEntry: false })?.isDirectory() ?? false;
}

async function generate(root: string, title: string): Promise<string> {
  removeForeignFile(deployKeyPath(root));
  const argv = ["-q", "-t", "ed25519", "-N", "", "-C", title, "-f", deployKeyPath(root)];
  const ending = await asOwner(root, ["ssh-keygen", ...argv]);
  const key = await readDeployKey(root);
  if (key !== null) return key;
  const why = ending.kind === "not_found" ? "ssh-keygen is not installed" : ending.lastLines.join(" ");
  throw new CommandError(
    `No deploy key could be made in ${root}/.git: ${why}. It takes OpenSSH's client (Debian: apt-get install openssh-client).`,
  );
}

/** The public half of the key of the checkout `root`; null if it has none that can be used. */
export async function readDeployKey(root: string): Promise<string | null> {
  const ending = await asOwner(root, ["ssh-keygen", "-y", "-f", deployKeyPath(root)]);
  return hasSucceeded(ending) ? ending.output.trim() : null;
}

/** Takes the key of the checkout `root` away, if it has one, and what `makeDeployKey` told git. */
export async function removeDeployKey(root: string): Promise<void> {
  if (!hasOwnGitDirectory(root)) return;
  const used = await gitAsOwner(root, "config", "--get", setting);
  if (used?.includes(sshWithKey(deployKeyPath(root)))) await gitAsOwner(root, "config", "--unset", setting);
  for (const path of [deployKeyPath(root), `${deployKeyPath(root)}.pub`]) removeForeignFile(path);
}

/** Whether the remote answers git in the checkout `root` as it will answer the service. */
export async function canReadRemote(root: string): Promise<boolean> {
  return (await gitAsOwner(root, "ls-remote", "--", "origin", "HEAD")) !== null;
}

function gitAsOwner(root: string, ...args: readonly string[]): Promise<string | null> {
  const user = ownerOf(root);
  return gitOutput(root, args, { env: envOf(root, user?.home), user, timeoutMs });
}

function asOwner(root: string, argv: Argv) {
  const user = ownerOf(root);
  return runCommand({ argv, env: envOf(root, user?.home), user, timeoutMs });
}

/** Nothing of the caller's: the owner's settings of git decide which programs it starts. */
function envOf(root: string, home = process.env.HOME): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, HOME: home, LC_ALL: "C", ...neverAsk(root) };
}
