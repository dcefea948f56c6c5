import { readFileSync, writeFileSync } from "node:fs";
import type { Ending } from "../../deployments/deployment.ts";
import { checkedOutCommit } from "../../platform/git.ts";
import type { RunDirectory } from "../run-directory.ts";

/** Keeps the commit that was verified beside the run, for whichever service sees its end. */
export function noteVerified({ verifiedPath }: RunDirectory, commit: string): void {
  writeFileSync(verifiedPath, commit, { mode: 0o600 });
}

/** Fails a run that succeeded if a commit was verified for it and another one is checked out at its end. */
export async function checkDeployed(
  { directory, repoPath, environment }: CheckedRun,
  ending: Ending,
): Promise<Ending> {
  const verified = readVerified(directory);
  if (verified === null || ending.state !== "succeeded") return ending;
  const deployed = await checkedOutCommit(repoPath, environment);
  if (deployed === verified) return ending;
  const found = deployed === null ? "no commit" : deployed.slice(0, 7);
  const detail = `deploy.sh ended well, but ${found} is checked out and not ${verified.slice(0, 7)}, whose signature was verified: what runs now may be unsigned. Let deploy.sh deploy exactly $DEPLOY_COMMIT if DEPLOY_EXACT is set, as the one of hotpush init does.`;
  return { state: "failed", exitCode: ending.exitCode, problem: { code: "other_commit_deployed", detail } };
}

interface CheckedRun {
  readonly directory: RunDirectory;
  readonly repoPath: string;
  readonly environment: NodeJS.ProcessEnv;
}

function readVerified({ verifiedPath }: RunDirectory): string | null {
  try {
    return readFileSync(verifiedPath, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
