import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import type { Ending } from "../../deployments/deployment.ts";
import { checkedOutCommit } from "../../platform/git.ts";
import { isShortage } from "../../platform/shortage.ts";
import type { RunDirectory } from "../run-directory.ts";

interface CheckedRun {
  readonly directory: RunDirectory;
  readonly repoPath: string;
  readonly environment: NodeJS.ProcessEnv;
}

const mostTries = 30;
const retryMs = 1_000;

/** Stores the verified commit with the run, for the service that sees its end. */
export function noteVerified({ verifiedPath }: RunDirectory, commit: string): void {
  writeFileSync(verifiedPath, commit, { mode: 0o600 });
}

/**
 * Fails a successful run if a commit was verified for it and another one is checked out at its end, or if the two cannot
 * be compared. Never rejects: if the machine is short of a resource, it retries for a while.
 */
export async function checkDeployed(run: CheckedRun, ending: Ending): Promise<Ending> {
  if (ending.state !== "succeeded") return ending;
  const fault = await findFault(run);
  if (fault === null) return ending;
  const detail = `deploy.sh exited with 0, but ${fault}: what runs now may be unsigned. Let deploy.sh deploy exactly $DEPLOY_COMMIT if DEPLOY_EXACT is set, as the one of hotpush init does.`;
  return { state: "failed", exitCode: ending.exitCode, problem: { code: "other_commit_deployed", detail } };
}

async function findFault(run: CheckedRun): Promise<string | null> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await compare(run);
    } catch (error) {
      const { message } = error as Error;
      if (!isShortage(error) || tries === mostTries) return `the commit could not be compared (${message})`;
    }
    await pause(retryMs);
  }
}

async function compare({ directory, repoPath, environment }: CheckedRun): Promise<string | null> {
  const verified = readVerified(directory);
  if (verified === null) return null;
  const deployed = await checkedOutCommit(repoPath, environment);
  if (deployed === verified) return null;
  const found = deployed === null ? "no commit" : deployed.slice(0, 7);
  return `${found} is checked out and not ${verified.slice(0, 7)}, whose signature was verified`;
}

function readVerified({ verifiedPath }: RunDirectory): string | null {
  try {
    return readFileSync(verifiedPath, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
