import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Signers } from "../../config/signers-file.ts";
import { runGit } from "../../platform/git.ts";
import { runCommand } from "../../platform/run-command.ts";
import type { SystemUser } from "../../platform/users.ts";
import { judgeSignature, type SignatureVerdict } from "./judge-signature.ts";

export interface VerifyOptions {
  readonly repoPath: string;
  /** A directory that is created for this and removed; only this user may write in its parent. */
  readonly scratchPath: string;
  /** The file of `signers`; `<path>.revoked`, if it exists, has the revoked SSH keys. */
  readonly signersPath: string;
  readonly signers: Signers;
  /** The environment and the user with which git can read the repository. */
  readonly env: Readonly<Record<string, string>>;
  readonly user: SystemUser | null;
  readonly signal: AbortSignal;
}

/** A signature could not be verified, because a tool is missing or does not work. */
export class VerificationError extends Error {
  override readonly name = "VerificationError";
}

/** The directory and environment of one verification. */
interface Scratch {
  readonly path: string;
  readonly env: Readonly<Record<string, string>>;
  /** Fingerprints of the GPG keys that ALLOWED_SIGNERS has. */
  readonly pgpKeys: readonly string[];
}

const timeoutMs = 30_000;

/**
 * Verifies that `commit`, which is in the repository, is signed by an allowed key that is valid now. Git runs in a
 * directory of its own, with the repository's objects but none of its settings, refs or replacements.
 *
 * @throws VerificationError with the output of the tool if git, ssh-keygen or gpg cannot be run
 */
export async function verifyCommit(commit: string, options: VerifyOptions): Promise<SignatureVerdict> {
  const path = options.scratchPath;
  rmSync(path, { recursive: true, force: true });
  // A project has no state directory before its first script.
  mkdirSync(path, { recursive: true, mode: 0o700 });
  try {
    const scratch = await prepare(path, commit, options);
    const header = await output(scratch, options, "cat-file", "commit", commit);
    if (!/^gpgsig(?:-sha256)? /m.test(header.split("\n\n")[0] ?? "")) return { kind: "unsigned", detail: "" };
    const lines: string[] = [];
    const ending = await runGit(path, [...gitOptions(path), "verify-commit", "--raw", commit], {
      ...{ env: scratch.env, timeoutMs, signal: options.signal },
      onLine: (line) => lines.push(line),
    });
    if (ending.kind !== "exited")
      throw new VerificationError(`git verify-commit did not end (${ending.kind})`);
    const { signers } = options;
    return judgeSignature({ lines, isGood: ending.code === 0, signers, pgpKeys: scratch.pgpKeys });
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
}

/** Settings on the command line take precedence over any file. */
function gitOptions(path: string): readonly string[] {
  const settings = {
    "gpg.program": "gpg",
    "gpg.openpgp.program": "gpg",
    "gpg.ssh.program": "ssh-keygen",
    "gpg.x509.program": "false",
    "gpg.minTrustLevel": "undefined",
    "gpg.ssh.allowedSignersFile": join(path, "allowed_signers"),
    "gpg.ssh.revocationFile": join(path, "revoked"),
  };
  const given = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  return ["--git-dir=git", "--no-replace-objects", ...given];
}

async function prepare(path: string, commit: string, options: VerifyOptions): Promise<Scratch> {
  const { signers, signersPath, env: given } = options;
  const home = join(path, "gnupg");
  mkdirSync(home, { mode: 0o700 });
  writeFileSync(join(home, "gpg.conf"), "no-autostart\nno-auto-key-retrieve\n");
  const env: Record<string, string> = {
    PATH: given.PATH ?? "",
    ...(given.TZ === undefined ? {} : { TZ: given.TZ }),
    LC_ALL: "C",
    HOME: path,
    GNUPGHOME: home,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
  };
  // Git checks validity at the commit's date, which its author chooses: a key must be valid now as well.
  const valid = signers.ssh.filter((signer) => isValidAt(signer, Date.now()));
  writeFileSync(join(path, "allowed_signers"), valid.map(({ line }) => `${line}\n`).join(""));
  writeFileSync(join(path, "revoked"), readIfThere(`${signersPath}.revoked`));
  const format = commit.length === 64 ? "sha256" : "sha1";
  const bare = ["--quiet", "--bare", "--template=", `--object-format=${format}`];
  await run(inScratch(options), path, env, ["init", ...bare, "git"]);
  const objects = await run(options, options.repoPath, given, ["rev-parse", "--git-path", "objects"]);
  mkdirSync(join(path, "git/objects/info"), { recursive: true });
  writeFileSync(join(path, "git/objects/info/alternates"), `${resolve(options.repoPath, objects)}\n`);
  return { path, env, pgpKeys: await importKeys(signers.pgp, env, options.signal) };
}

function isValidAt({ validFromMs, validUntilMs }: Signers["ssh"][number], nowMs: number): boolean {
  return (validFromMs ?? nowMs) <= nowMs && nowMs < (validUntilMs ?? Number.POSITIVE_INFINITY);
}

function readIfThere(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return Buffer.alloc(0);
    throw error;
  }
}

/** @returns the fingerprints of the keys; no other key that gpg may find counts */
async function importKeys(
  blocks: readonly string[],
  env: Record<string, string>,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const imported: string[] = [];
  for (const block of blocks) {
    const ending = await runCommand({
      argv: ["gpg", "--batch", "--no-autostart", "--status-fd=1", "--import"],
      ...{ env, timeoutMs, input: `${block}\n`, signal },
    });
    if (ending.kind === "not_found") throw new VerificationError("gpg is not installed");
    if (ending.kind !== "exited") throw new VerificationError(`gpg --import did not end (${ending.kind})`);
    const keys = [...ending.output.matchAll(/^\[GNUPG:\] IMPORT_OK \d+ ([0-9A-F]+)$/gm)].map(
      ([, key]) => key ?? "",
    );
    if (keys.length === 0)
      throw new VerificationError(
        `gpg could not import a key: ${ending.lastLines.at(-1) ?? "no reason given"}`,
      );
    imported.push(...keys);
  }
  return imported;
}

function output(scratch: Scratch, options: VerifyOptions, ...args: readonly string[]): Promise<string> {
  return run(inScratch(options), scratch.path, scratch.env, [...gitOptions(scratch.path), ...args]);
}

/** Only the repository is read as its owner, who must have no part in the verdict. */
function inScratch({ signal }: VerifyOptions): Pick<VerifyOptions, "user" | "signal"> {
  return { user: null, signal };
}

async function run(
  { user, signal }: Pick<VerifyOptions, "user" | "signal">,
  directory: string,
  env: Readonly<Record<string, string>>,
  args: readonly string[],
): Promise<string> {
  const ending = await runGit(directory, args, { env, user, timeoutMs, signal });
  if (ending.kind === "exited" && ending.code === 0) return ending.output;
  if (ending.kind === "not_found") throw new VerificationError("git is not installed");
  throw new VerificationError(
    `git ${ending.kind === "exited" ? (ending.lastLines.at(-1) ?? "failed") : ending.kind}`,
  );
}
