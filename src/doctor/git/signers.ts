import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readSigners } from "../../config/signers-file.ts";
import { signatureProblem } from "../../runner/signers/judge-signature.ts";
import { VerificationError, verifyCommit } from "../../runner/signers/verify-commit.ts";
import { type Check, judge, ok, problem, type Result, skipped, warning } from "../check.ts";
import { quote } from "../quote.ts";
import { outputOf } from "../run-program.ts";
import type { Scene } from "../scene.ts";
import { statOf } from "../stat.ts";

/** With ALLOWED_SIGNERS, whether the next deployment would get past the check of its signature. */
export const signersCheck: Check = {
  id: "signers",
  group: "Git",
  subject: "the newest commit is signed by an allowed key",
  async look(scene) {
    const { allowedSigners: path, repoPath } = scene;
    if (path === null) return skipped("ALLOWED_SIGNERS is not set: commits need no signature");
    const signers = readSigners(path, repoPath);
    if (typeof signers === "string") return judge([problem(signers)], "");
    const mode = statOf(path)?.mode ?? 0;
    if ((mode & 0o022) !== 0) {
      const text = `${path} can be written by other users of this machine, who could allow their own keys.`;
      return judge([warning(text, { command: `chmod go-w ${quote(path)}` })], "");
    }
    const commit = await newestHere(scene);
    if (commit === null) return skipped("the newest commit of the branch is not in the checkout yet");
    const scratchPath = mkdtempSync(join(tmpdir(), "hotpush-doctor-"));
    try {
      return await judgeCommit(commit, { ...scene, path, signers, scratchPath });
    } catch (error) {
      if (!(error instanceof VerificationError)) throw error;
      return judge([problem(`The signature of the newest commit cannot be verified: ${error.message}.`)], "");
    } finally {
      rmSync(scratchPath, { recursive: true, force: true });
    }
  },
};

/** Nothing is fetched: the newest commit of the remote if it is here, else none. */
async function newestHere({ remote, branch, repoPath, scriptEnv }: Scene): Promise<string | null> {
  const answer = await remote();
  if (answer.kind !== "refs") return null;
  const names = branch === null ? ["main", "master"] : [branch];
  const commit = names.map((name) => answer.refs.get(`refs/heads/${name}`)).find((one) => one !== undefined);
  if (commit === undefined) return null;
  const found = await outputOf(["git", "-C", repoPath, "cat-file", "-t", commit], { env: scriptEnv });
  return found === "commit" ? commit : null;
}

interface Verifying extends Scene {
  readonly path: string;
  readonly signers: Exclude<ReturnType<typeof readSigners>, string>;
  readonly scratchPath: string;
}

async function judgeCommit(commit: string, scene: Verifying): Promise<Result> {
  const { path: signersPath, signers, scratchPath, repoPath, scriptEnv: env } = scene;
  const { signal } = new AbortController();
  const options = { repoPath, scratchPath, signersPath, signers, env, signal };
  const verdict = await verifyCommit(commit, options);
  if (verdict.kind === "good") return ok(`${commit.slice(0, 7)} is signed by ${verdict.signer}`);
  const { detail } = signatureProblem(verdict.kind, { commit, signersPath, key: verdict.detail });
  return judge([problem(detail.replace(" Nothing was run.", ""))], "");
}
