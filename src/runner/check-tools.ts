import { readSigners } from "../config/signers-file.ts";
import { findProgram } from "../platform/find-program.ts";
import { ProblemError } from "../problems.ts";

const tools = [
  ["flock", "util-linux"],
  ["mkfifo", "coreutils"],
] as const;

const signingTools = { ssh: ["ssh-keygen", "openssh-client"], pgp: ["gpg", "gpg"] } as const;

/**
 * The programs that verify signatures by the keys in ALLOWED_SIGNERS, each with its Debian package; none if that is not
 * set.
 */
export function toolsForSigners(
  path: string | null,
  repoPath: string,
): readonly (readonly [string, string])[] {
  const signers = path === null ? null : readSigners(path, repoPath);
  if (signers === null || typeof signers === "string") return [];
  const kinds = (["ssh", "pgp"] as const).filter((kind) => signers[kind].length > 0);
  return [["git", "git"], ...kinds.map((kind) => signingTools[kind])];
}

/**
 * Checks that the programs are installed that a safe run of a script needs. It only looks for them: a process for each
 * would slow down every start.
 *
 * @param forSigners from `toolsForSigners`
 * @throws ProblemError `tool_missing`
 */
export function checkTools(
  forSigners: ReturnType<typeof toolsForSigners>,
  path: string = process.env.PATH ?? "",
): void {
  for (const [program, from] of [...tools, ...forSigners]) {
    if (findProgram(program, path) !== null) continue;
    const detail = `${program} is not installed. Install the package ${from}.`;
    throw new ProblemError({ code: "tool_missing", detail });
  }
}
