import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { branches } from "../../config/settings.ts";
import { readSigners } from "../../config/signers-file.ts";
import { statOf } from "../../platform/files.ts";
import { signatureProblem } from "../../runner/signers/judge-signature.ts";
import { VerificationError, verifyCommit } from "../../runner/signers/verify-commit.ts";
import { type CheckFinding, ok, problem, quote, skip, warning } from "../check.ts";
import type { DoctorContext } from "../context.ts";

/** With ALLOWED_SIGNERS, whether the next deployment would pass the check of its signature. */
export async function checkSigners(context: DoctorContext): Promise<CheckFinding> {
  const { allowedSigners: signersPath, repoPath, scriptEnv: env, scriptUser: user } = context;
  if (signersPath === null) return skip("ALLOWED_SIGNERS is not set: commits need no signature");
  const signers = readSigners(signersPath, repoPath);
  if (typeof signers === "string") return problem(signers);
  if (((statOf(signersPath)?.mode ?? 0) & 0o022) !== 0) {
    const text = `Other users of this machine can write to ${signersPath}, and could allow their own keys.`;
    return warning(text, `chmod go-w ${quote(signersPath)}`);
  }
  const commit = await newestHere(context);
  if (commit === null) return skip("the newest commit of the branch is not in the checkout yet");
  const scratchPath = mkdtempSync(join(tmpdir(), "hotpush-doctor-"));
  try {
    const { signal } = new AbortController();
    const options = { repoPath, scratchPath, signersPath, signers, env, user, signal };
    const verdict = await verifyCommit(commit, options);
    if (verdict.kind === "good") return ok(`${commit.slice(0, 7)} is signed by ${verdict.signer}`);
    const { detail } = signatureProblem(verdict.kind, { commit, signersPath, key: verdict.detail });
    return problem(detail.replace(" Nothing was run.", ""));
  } catch (error) {
    if (!(error instanceof VerificationError)) throw error;
    return problem(`The signature of the newest commit cannot be verified: ${error.message}.`);
  } finally {
    rmSync(scratchPath, { recursive: true, force: true });
  }
}

/** The newest commit of the remote, or null if it is not here: nothing is fetched. */
async function newestHere({ remote, branch, readGit }: DoctorContext): Promise<string | null> {
  const answer = await remote();
  if (answer.kind !== "refs") return null;
  const names = branch === null ? branches : [branch];
  const commit = names.map((name) => answer.refs.get(`refs/heads/${name}`)).find((one) => one !== undefined);
  return commit !== undefined && (await readGit("cat-file", "-t", commit)) === "commit" ? commit : null;
}
