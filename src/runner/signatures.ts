import { lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { readSigners, type Signers } from "#config/project";
import type { Deployment } from "#deployments/deployment";
import type { SystemUser } from "#platform/files";
import { isAncestor, runGit, withoutReplacements } from "#platform/git";
import { runCommand } from "#platform/run-command";
import { printable } from "#platform/terminal";
import type { Problem } from "#problems";
import type { ProjectScript } from "./script.ts";

export interface CheckSignedOptions {
  readonly signersPath: string;
  readonly findLastDeployed: () => string | null;
  /** When the service first heard of a commit, in milliseconds since 1970; null: just now. */
  readonly findFirstSeenMs: (commit: string) => number | null;
  readonly script: ProjectScript;
  readonly statePath: string;
  readonly signal: AbortSignal;
  /** Told whose signature is good. */
  readonly onVerified: (signer: string) => void;
}

/**
 * Checks whether a branch's tip may be deployed where commits must be signed: it must descend from the commit deployed
 * last (unless an operator deploys it by hand) and be signed by an allowed key. The file of keys is read each time, so a
 * key that was removed no longer counts.
 *
 * @returns why not, or null
 * @throws errors of the system; any error if `signal` is aborted
 */
export async function checkSigned(
  options: CheckSignedOptions,
  deployment: Deployment,
  commit: string,
): Promise<Problem | null> {
  const { signersPath, script, statePath, signal } = options;
  const { repoPath, environment: env, user } = script;
  const signers = readSigners(signersPath, repoPath);
  if ("fault" in signers) return { code: "signers_unusable", detail: `${signers.fault} Nothing was run.` };
  // Any branch: another one may be older. The replacements of commits that a repository may have do not count.
  const last = deployment.trigger === "manual" ? null : options.findLastDeployed();
  const inRepository = { env: withoutReplacements(env), user };
  if (last !== null && !(await isAncestor(repoPath, last, commit, inRepository))) {
    const branch = deployment.ref.replace("refs/heads/", "");
    const detail = `${branch} is at ${commit.slice(0, 7)}, which does not descend from ${last.slice(0, 7)}, deployed last: the branch was put back or rewritten. Nothing was run. If that is intended: hotpush deploy ${branch}`;
    return { code: "branch_diverged", detail };
  }
  try {
    const where = { repoPath, scratchPath: join(statePath, "signers"), signersPath, env, user };
    const seenAtMs = options.findFirstSeenMs(commit) ?? Date.now();
    const verdict = await verifyCommit(commit, { ...where, signers, seenAtMs, signal });
    if (verdict.kind !== "good")
      return signatureProblem(verdict.kind, { commit, signersPath, key: verdict.detail });
    options.onVerified(verdict.signer);
    return null;
  } catch (error) {
    if (signal.aborted || !(error instanceof VerificationError)) throw error;
    const detail = `The signature could not be verified: ${error.message}. Nothing was run. See: hotpush doctor signers`;
    return { code: "signers_unusable", detail };
  }
}

export interface VerifyOptions {
  readonly repoPath: string;
  /** A directory that is created for this and removed; only this user may write in its parent. */
  readonly scratchPath: string;
  /** The file of `signers`; `<path>.revoked`, if it exists, has the revoked SSH keys. */
  readonly signersPath: string;
  readonly signers: Signers;
  /** The time at which an SSH key or certificate must have been valid, in milliseconds since 1970. */
  readonly seenAtMs: number;
  /** The environment and the user with which git can read the repository. */
  readonly env: Readonly<Record<string, string>>;
  readonly user: SystemUser | null;
  readonly signal: AbortSignal;
}

/** What a run of git needs. */
type Runs = Pick<VerifyOptions, "env" | "user" | "signal">;

/** A signature could not be verified, because a tool is missing or does not work. */
export class VerificationError extends Error {
  override readonly name = "VerificationError";
}

const timeoutMs = 30_000;
/** A signed commit with a long message and many parents takes a tenth of it. */
export const maxSignedCommitBytes = 1024 ** 2;
const sshKeygenPath = fileURLToPath(new URL("ssh-keygen-at.sh", import.meta.url));
/** Of the lines of gpg that programs read. */
const prefix = "[GNUPG:] ";

/**
 * Verifies that `commit`, which is in the repository, is signed by an allowed key. An SSH key or certificate must have been valid at
 * `seenAtMs`, a GPG key must be valid now, and neither may be revoked; the dates in the commit and its signature don't count. Git runs
 * in a separate directory, with the repository's objects but none of its settings, refs or replacements.
 *
 * @throws VerificationError if the commit is larger than 1 MiB, or git, ssh-keygen or gpg cannot be run
 */
export async function verifyCommit(commit: string, options: VerifyOptions): Promise<SignatureVerdict> {
  const { scratchPath: path, signers, signal } = options;
  rmSync(path, { recursive: true, force: true });
  // A project has no state directory before its first script.
  mkdirSync(path, { recursive: true, mode: 0o700 });
  try {
    // Only the repository is read as its owner, who must have no part in the verdict.
    const inScratch = { env: environmentIn(path, options), user: null, signal };
    await prepare(commit, options, inScratch);
    const pgpKeys = await importKeys(signers.pgp, inScratch.env, signal);
    const size = await run(path, inScratch, [...gitOptions(path), "cat-file", "-s", commit]);
    if (Number(size) > maxSignedCommitBytes) throw new VerificationError("the commit is larger than 1 MiB");
    const text = await run(path, inScratch, [...gitOptions(path), "cat-file", "commit", commit]);
    const header = `${text.split("\n\n")[0]}\n`;
    if (!/^gpgsig(?:-sha256)? /m.test(header)) return { kind: "unsigned", detail: "" };
    if (!isAsSigned(header)) return { kind: "bad", detail: "" };
    const lines: string[] = [];
    const ending = await runGit(path, [...gitOptions(path), "verify-commit", "--raw", commit], {
      ...inScratch,
      timeoutMs,
      onLine: (line) => lines.push(line),
    });
    if (ending.kind !== "exited")
      throw new VerificationError(`git verify-commit did not end (${ending.kind})`);
    // The status lines of gpg, or else the output of ssh-keygen. A signature that is not known to be good is a fault.
    const isGood = ending.code === 0;
    const status = lines
      .filter((line) => line.startsWith(prefix))
      .map((line) => line.slice(prefix.length).split(" "));
    return status.length > 0
      ? judgePgp(isGood, status, pgpKeys)
      : judgeSsh(isGood, lines.join("\n"), signers);
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
}

/**
 * Git leaves each header that begins with `gpgsig` out of what is signed, wherever it stands: others could give a signed commit another
 * id by one more, or hide its parents by one before them.
 */
function isAsSigned(header: string): boolean {
  const isInOrder = /^tree \S+\n(?:parent \S+\n)*author .*\ncommitter .*\n/.test(header);
  return isInOrder && header.match(/^gpgsig/gm)?.length === 1;
}

/** Settings on the command line take precedence over any file. */
function gitOptions(path: string): readonly string[] {
  const settings = {
    "gpg.program": "gpg",
    "gpg.openpgp.program": "gpg",
    "gpg.ssh.program": sshKeygenPath,
    "gpg.x509.program": "false",
    "gpg.minTrustLevel": "undefined",
    "gpg.ssh.allowedSignersFile": join(path, "allowed_signers"),
    "gpg.ssh.revocationFile": join(path, "revoked"),
  };
  const given = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  return ["--git-dir=git", "--no-replace-objects", ...given];
}

function environmentIn(path: string, { env, seenAtMs }: VerifyOptions): Record<string, string> {
  const { PATH = "", TZ } = env;
  return {
    PATH,
    VERIFY_AT: String(Math.floor(seenAtMs / 1_000)),
    ...(TZ === undefined ? {} : { TZ }),
    LC_ALL: "C",
    HOME: path,
    GNUPGHOME: join(path, "gnupg"),
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
  };
}

async function prepare(commit: string, options: VerifyOptions, inScratch: Runs): Promise<void> {
  const { scratchPath: path, repoPath, signers, signersPath } = options;
  mkdirSync(join(path, "gnupg"), { mode: 0o700 });
  writeFileSync(join(path, "gnupg/gpg.conf"), "no-autostart\nno-auto-key-retrieve\n");
  writeFileSync(join(path, "allowed_signers"), signers.ssh.map(({ line }) => `${line}\n`).join(""));
  const revokedPath = `${signersPath}.revoked`;
  const revoked = readRevoked(revokedPath);
  if (revoked.includes("-----BEGIN PGP"))
    throw new VerificationError(
      `${revokedPath} has a GPG key, and is about SSH keys only: remove that key from ${signersPath} instead`,
    );
  writeFileSync(join(path, "revoked"), revoked);
  const format = commit.length === 64 ? "sha256" : "sha1";
  await run(path, inScratch, [
    "init",
    "--quiet",
    "--bare",
    "--template=",
    `--object-format=${format}`,
    "git",
  ]);
  const objects = await run(repoPath, options, ["rev-parse", "--git-path", "objects"]);
  mkdirSync(join(path, "git/objects/info"), { recursive: true });
  writeFileSync(join(path, "git/objects/info/alternates"), `${resolve(repoPath, objects)}\n`);
}

/** The file of revoked keys, which need not be there. A link to nothing, or what cannot be read, is a fault. */
function readRevoked(path: string): string | Buffer {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) ? readFileSync(path) : "";
  } catch (error) {
    throw new VerificationError(`${path} cannot be read (${(error as NodeJS.ErrnoException).code})`);
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
      env,
      timeoutMs,
      input: `${block}\n`,
      signal,
    });
    if (ending.kind === "not_found") throw new VerificationError("gpg is not installed");
    if (ending.kind !== "exited") throw new VerificationError(`gpg --import did not end (${ending.kind})`);
    const keys = [...ending.output.matchAll(/^\[GNUPG:\] IMPORT_OK \d+ ([0-9A-F]+)$/gm)];
    const reason = ending.lastLines.at(-1) ?? "no reason given";
    if (keys.length === 0) throw new VerificationError(`gpg could not import a key: ${reason}`);
    imported.push(...keys.map(([, key]) => key ?? ""));
  }
  return imported;
}

async function run(directory: string, { env, user, signal }: Runs, args: readonly string[]): Promise<string> {
  const ending = await runGit(directory, args, { env, user, timeoutMs, signal });
  if (ending.kind === "exited" && ending.code === 0) return ending.output;
  const reason = ending.kind === "exited" ? (ending.lastLines.at(-1) ?? "failed") : ending.kind;
  throw new VerificationError(`git ${reason}`);
}

/** Whose signature a commit has, or what is wrong with it; `detail` names the key as git's tools do, or is empty. */
export type SignatureVerdict =
  | { readonly kind: "good"; readonly signer: string }
  | { readonly kind: SignatureFault; readonly detail: string };

type SignatureFault = "unsigned" | "unknown" | "expired" | "revoked" | "bad";

/** @param pgpKeys the fingerprints of the GPG keys that are allowed */
function judgePgp(
  isGood: boolean,
  status: readonly (readonly string[])[],
  pgpKeys: readonly string[],
): SignatureVerdict {
  const find = (...names: readonly string[]) => status.find(([name = ""]) => names.includes(name));
  const [, keyId = "", ...owner] =
    find("GOODSIG", "EXPSIG", "EXPKEYSIG", "REVKEYSIG", "BADSIG", "ERRSIG") ?? [];
  // The last field is the fingerprint of the primary key, which identifies a key.
  const primary = find("VALIDSIG")?.at(-1) ?? "";
  // From 2.54 on, git also calls the signature of a key good that has expired.
  if (isGood && find("GOODSIG") && pgpKeys.includes(primary))
    return { kind: "good", signer: printable(owner.join(" ")) };
  const detail = `GPG key ${printable(keyId)}`;
  if (find("REVKEYSIG")) return { kind: "revoked", detail };
  if (find("EXPSIG", "EXPKEYSIG")) return { kind: "expired", detail };
  return { kind: find("BADSIG") ? "bad" : "unknown", detail };
}

function judgeSsh(isGood: boolean, text: string, signers: Signers): SignatureVerdict {
  const [, signer] = /^Good "git" signature for (.+) with \S+ key /m.exec(text) ?? [];
  if (isGood && signer !== undefined) return { kind: "good", signer: printable(signer) };
  const [, key = "", fingerprint = ""] = /^Good "git" signature with (\S+) key (\S+)/m.exec(text) ?? [];
  if (text.includes("incorrect signature")) return { kind: "bad", detail: "" };
  if (text.includes("not permitted"))
    return { kind: "unknown", detail: "its line allows other namespaces than git" };
  // This is all that ssh-keygen prints for a key that the file of revoked keys names.
  if (text.includes("Could not verify signature")) return { kind: "revoked", detail: "" };
  const [missing] = /^.*(?:(?:cannot|could not) (?:run|create)|ssh-keygen: not found).*$/m.exec(text) ?? [];
  if (key === "" && missing !== undefined) throw new VerificationError(printable(missing));
  const detail = printable(`${key} key ${fingerprint}`);
  const known = signers.ssh.find((one) => one.fingerprint === fingerprint);
  const hasLimit = known !== undefined && (known.validFromMs !== null || known.validUntilMs !== null);
  return { kind: hasLimit ? "expired" : "unknown", detail };
}

const advice: Readonly<Record<SignatureFault, readonly [Problem["code"], string, string]>> = {
  unsigned: [
    "commit_unsigned",
    "is not signed",
    "Sign it and push again: git commit --amend --no-edit --gpg-sign; git config commit.gpgSign true signs all later ones.",
  ],
  unknown: [
    "signer_unknown",
    "is signed by a key that is not allowed",
    "Find out who pushed it. If you trust the key, add it to that file; else sign the commit with a key that is in it.",
  ],
  expired: [
    "signer_expired",
    "is signed by a key that is not valid now, or was not when it signed",
    "Renew the key, put it into that file, and sign the commit with it.",
  ],
  revoked: [
    "signer_revoked",
    "is signed by a key that was revoked",
    "Find out who pushed it: somebody may use a stolen key. Sign the commit with another key.",
  ],
  bad: [
    "signature_bad",
    "has a signature that does not match its content",
    "Find out who pushed it: the commit was changed after it was signed.",
  ],
};

/** Why a commit may not be deployed, and what to do. */
export function signatureProblem(
  fault: SignatureFault,
  { commit, signersPath, key }: Readonly<Record<"commit" | "signersPath" | "key", string>>,
): Problem {
  const [code, what, next] = advice[fault];
  const named = key === "" ? "" : ` (${key})`;
  const detail = `Commit ${commit.slice(0, 7)} ${what}${named}. ALLOWED_SIGNERS is ${signersPath}. Nothing was run. ${next}`;
  return { code, detail };
}
