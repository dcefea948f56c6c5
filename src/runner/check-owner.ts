import { join } from "node:path";
import { findProgram } from "../platform/files.ts";
import { hasSucceeded, runCommand } from "../platform/run-command.ts";
import type { SystemUser } from "../platform/users.ts";
import type { Problem } from "../problems.ts";
import type { CheckedScript } from "./known-secrets.ts";

/** What keeps a script from running as the owner of its repository, or null. */
export async function checkOwner({ user, repoPath, environment }: CheckedScript): Promise<Problem | null> {
  if (user === null) return null;
  const fault = findUserFault(user, repoPath, environment.PATH ?? "");
  if (fault !== null) return { code: "owner_unusable", detail: fault };
  const script = join(repoPath, "deploy.sh");
  const canUser = (access: string, path: string) =>
    // Root may do everything, so only a process of the user shows what the user may do.
    runCommand({ argv: ["test", access, path], user, env: environment, timeoutMs: testTimeoutMs });
  const tests = [canUser("-x", repoPath), canUser("-r", script), canUser("-x", script)] as const;
  const [entering, ...using] = await Promise.all(tests);
  const refusal = entering.lastLines.at(-1);
  if (refusal !== undefined) return cannotBecome(user, repoPath, refusal);
  if (!hasSucceeded(entering)) return cannotEnter(user, repoPath);
  const [canRead, canExecute] = using.map(hasSucceeded);
  return canRead && canExecute ? null : cannotUse(user, script, canRead === true);
}

const testTimeoutMs = 10_000;

function findUserFault({ uid, name }: SystemUser, repoPath: string, searchPath: string): string | null {
  if (name === null)
    return `${repoPath} belongs to uid ${uid}, and /etc/passwd has no such user. deploy.sh runs as the owner of the checkout, and ssh refuses a user without a name. A container keeps the /etc/passwd that it started with. If the user is new, run hotpush init in the checkout again, or in the directory of the machine part: docker compose up -d --force-recreate run. If not, give the checkout to a user of this machine with chown -R.`;
  if (findProgram("setpriv", searchPath) === null)
    return "deploy.sh runs as the owner of the checkout by means of setpriv, which is not installed. Install the package util-linux.";
  return null;
}

function cannotBecome(user: SystemUser, repoPath: string, refusal: string): Problem {
  const detail = `No program can be started as ${nameOf(user)}, who owns ${repoPath}: ${refusal}. Give Hotpush the capabilities SETUID and SETGID, or run it as that user.`;
  return { code: "owner_unusable", detail };
}

function cannotEnter(user: SystemUser, repoPath: string): Problem {
  const detail = `deploy.sh runs as ${nameOf(user)}, who owns ${repoPath} but may not enter it. To find the directory that keeps that user out: namei -l ${repoPath}`;
  return { code: "repository_not_accessible", detail };
}

function cannotUse(user: SystemUser, script: string, canRead: boolean): Problem {
  const detail = `deploy.sh runs as ${nameOf(user)}, who owns the checkout but may not ${canRead ? "execute" : "read"} ${script}. Run: chown ${user.uid} ${script} && chmod u+rx ${script}`;
  return { code: canRead ? "script_not_executable" : "script_not_readable", detail };
}

function nameOf({ name, uid }: SystemUser): string {
  return `${name} (uid ${uid})`;
}
