import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import type { Ending } from "../../deployments/deployment.ts";
import { checkedOutCommit, isAncestor, withoutReplacements } from "../../platform/git.ts";
import { isShortage } from "../../platform/run-command.ts";
import type { SystemUser } from "../../platform/users.ts";
import type { RunDirectory } from "../run-directory.ts";
import type { ExactTip } from "./resolve-tip.ts";

const mostTries = 30;
const retryMs = 1_000;

/** Stores with the run what it may deploy, for the service that sees its end. */
export function noteTip({ verifiedPath, tipPath }: RunDirectory, { commit, isSigned }: ExactTip): void {
  writeFileSync(isSigned ? verifiedPath : tipPath, commit, { mode: 0o600 });
}

export interface CheckedRun {
  readonly directory: RunDirectory;
  readonly repoPath: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly user: SystemUser | null;
}

/**
 * Fails a successful run if what is checked out at its end is not what it had to deploy, or if the two cannot be compared.
 * Never rejects: if the machine is short of a resource, it retries for a while.
 */
export async function checkDeployed(run: CheckedRun, ending: Ending): Promise<Ending> {
  if (ending.state !== "succeeded") return ending;
  const fault = await findFault(run);
  if (fault === null) return ending;
  const detail = `deploy.sh exited with 0, but ${fault}. Let deploy.sh deploy exactly $DEPLOY_COMMIT if DEPLOY_EXACT is set, as the one of hotpush init does.`;
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

/**
 * A signature holds for one commit. Without one, the push has had no part in what the script was given, so a script that
 * fetches something newer itself, or does not use the checkout, does no harm: only a commit beside the branch is a fault.
 */
async function compare(run: CheckedRun): Promise<string | null> {
  const { directory, repoPath, environment: env, user } = run;
  const verified = readNote(directory.verifiedPath);
  const tip = verified ?? readNote(directory.tipPath);
  if (tip === null) return null;
  const deployed = await checkedOutCommit(repoPath, { env, user });
  if (deployed === tip) return null;
  const found = deployed === null ? "no commit" : deployed.slice(0, 7);
  if (verified !== null) {
    return `${found} is checked out and not ${tip.slice(0, 7)}, whose signature was verified: what runs now may be unsigned`;
  }
  if (deployed !== null && (await isOfOneLine(run, deployed, tip))) return null;
  return `${found} is checked out, which is not in the branch at ${tip.slice(0, 7)}`;
}

async function isOfOneLine({ repoPath, environment, user }: CheckedRun, one: string, other: string) {
  const reader = { env: withoutReplacements(environment), user };
  return (await isAncestor(repoPath, one, other, reader)) || (await isAncestor(repoPath, other, one, reader));
}

function readNote(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
