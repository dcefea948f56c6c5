import { constants, lstatSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "#log";
import { findProgram, isAllowed, kindOf, ownUid } from "#platform/files";
import { readForeignFile } from "#platform/foreign-files";
import { refusesOwner, runGit } from "#platform/git";
import { hasSucceeded, runCommand } from "#platform/run-command";
import { type Problem, ProblemError } from "#problems";
import { type CheckedScript, checkDeployLogDirectory } from "./script.ts";

/**
 * Checks whether `REPO_PATH/deploy.sh` can start. The system's own errors mislead: it reports "no such file or directory"
 * for a missing directory, a missing interpreter and Windows line endings alike.
 *
 * @returns what is wrong and how to fix it, or null
 */
export async function checkScript(project: CheckedScript): Promise<Problem | null> {
  const { repoPath, environment: env, user } = project;
  const script = join(repoPath, "deploy.sh");
  return (
    checkRepository(repoPath) ??
    checkFile(script) ??
    checkInterpreterLine(script, env.PATH ?? "") ??
    (await checkOwner(project)) ??
    (await checkOwnership(project)) ??
    checkDeployLogDirectory(user)
  );
}

/** Logs what would keep the deploy script from starting, if anything. */
export async function logScriptFault(project: CheckedScript, log: Log): Promise<void> {
  const problem = await checkScript(project);
  if (problem)
    log.error({ event: "script.unusable", code: problem.code }, `No push can be deployed: ${problem.detail}`);
}

/** What prevents a program from running in the repository directory, or null. */
export function checkRepository(repoPath: string): Problem | null {
  const entry = kindOf(repoPath);
  if (entry === "directory" && isAllowed(repoPath, constants.R_OK | constants.X_OK)) return null;
  if (entry === "directory" || entry === "inaccessible") {
    const detail = `This user (uid ${ownUid()}) may not enter ${repoPath}. Run: chown -R ${ownUid()} ${repoPath}`;
    return { code: "repository_not_accessible", detail };
  }
  const detail = `REPO_PATH is ${repoPath}, which is no directory. Clone the repository there, mount it, or set REPO_PATH.`;
  return { code: "repository_missing", detail };
}

function checkFile(script: string): Problem | null {
  const entry = kindOf(script);
  if (entry === "inaccessible" || (entry === "file" && !isAllowed(script, constants.R_OK))) {
    const detail = `This user (uid ${ownUid()}) may not read ${script}. Run: chmod a+rx ${script}`;
    return { code: "script_not_readable", detail };
  }
  if (entry !== "file") {
    const what = entry === "missing" ? "does not exist, or is a link to nothing" : "is no file";
    const detail = `${script} ${what}. Copy examples/deploy.sh there, run: chmod +x deploy.sh, and commit it.`;
    return { code: "script_missing", detail };
  }
  if (isAllowed(script, constants.X_OK)) return null;
  const detail = `${script} is not executable, or its file system is mounted noexec. Run: git update-index --chmod=+x deploy.sh, commit and push; here: chmod +x ${script}`;
  return { code: "script_not_executable", detail };
}

/** The longest `#!` line that Linux reads. */
const shebangBytes = 256;

/** What is wrong with the first line of `script` or with the program that it names, or null. */
function checkInterpreterLine(script: string, searchPath: string): Problem | null {
  const line = firstLineOf(script);
  if (line === null) return null;
  const [, interpreter = "", rest = ""] = /^#![ \t]*([^ \t\r]+)(.*)/s.exec(line) ?? [];
  if (interpreter === "") {
    const detail = `${script} does not begin with #! and a program to run it. Make its first line: #!/usr/bin/env bash`;
    return { code: "script_without_interpreter", detail };
  }
  if (line.endsWith("\r")) {
    const detail = `${script} has Windows line endings. Run: sed -i 's/\\r$//' ${script}, add the line "deploy.sh text eol=lf" to .gitattributes, and commit both.`;
    return { code: "script_crlf", detail };
  }
  const missing = (program: string, why: string): Problem => {
    const detail = `The first line of ${script} names ${program}, ${why}. Install it, or name another program there.`;
    return { code: "interpreter_missing", detail };
  };
  if (kindOf(interpreter) !== "file" || !isAllowed(interpreter, constants.X_OK))
    return missing(interpreter, "which does not exist or cannot be run");
  // `#!/usr/bin/env bash` finds bash in the PATH.
  const words = interpreter.endsWith("/env") ? rest.split(/[ \t]+/) : [];
  const program = words.find((word) => word !== "" && !word.startsWith("-") && !word.includes("="));
  if (program === undefined || program.includes("/") || findProgram(program, searchPath) !== null)
    return null;
  return missing(program, "which is not in the PATH");
}

/** The first line of `script`, as far as Linux reads a `#!` line; null if this process must not read it. */
function firstLineOf(script: string): string | null {
  try {
    const start = readForeignFile(script, { mostBytes: shebangBytes, isCut: true });
    return start.toString().split("\n")[0] ?? "";
  } catch {
    return null; // Its owner may have a link there to what only that user reaches.
  }
}

/** What keeps a script from running as the owner of its repository, or null. */
async function checkOwner({ user, repoPath, environment: env }: CheckedScript): Promise<Problem | null> {
  if (user === null) return null;
  const unusable = (detail: string): Problem => ({ code: "owner_unusable", detail });
  const { uid, name } = user;
  if (name === null)
    return unusable(
      `${repoPath} belongs to uid ${uid}, and /etc/passwd has no such user. deploy.sh runs as the owner of the checkout, and ssh refuses a user without a name. A container keeps the /etc/passwd that it started with. If the user is new, run hotpush init in the checkout again, or in the directory of the server, /etc/hotpush: docker compose up -d --force-recreate run. If not, give the checkout to a user of this machine with chown -R.`,
    );
  const script = join(repoPath, "deploy.sh");
  // Root may do everything, so only a process of the user shows what the user may do.
  const argv = ["test", "-r", script, "-a", "-x", script] as const;
  const ending = await runCommand({ argv, user, env, timeoutMs: testTimeoutMs });
  if (ending.kind === "not_found")
    return unusable(
      "deploy.sh runs as the owner of the checkout by means of setpriv, which is not installed. Install the package util-linux.",
    );
  const refusal = ending.lastLines.at(-1);
  const owner = `${name} (uid ${uid}), who owns ${repoPath}`;
  if (refusal !== undefined)
    return unusable(
      `No program can be started as ${owner}: ${refusal}. Give Hotpush the capabilities SETUID and SETGID, or run it as that user.`,
    );
  if (hasSucceeded(ending)) return null;
  const detail = `deploy.sh runs as ${owner} but may not read and execute ${script}. To find what keeps that user out: namei -l ${script}`;
  return { code: "script_not_executable", detail };
}

const testTimeoutMs = 10_000;

/**
 * Git does nothing in a repository of another user, unless its settings trust that repository. It is asked only if the
 * owner is another user.
 */
export async function checkOwnership({
  repoPath,
  environment: env,
  user,
}: CheckedScript): Promise<Problem | null> {
  const uid = user?.uid ?? ownUid();
  const owner = lstatSync(join(repoPath, ".git"), { throwIfNoEntry: false })?.uid;
  if (owner === undefined || (owner === uid && lstatSync(repoPath).uid === uid)) return null;
  // A machine that cannot start git now says nothing about the owner: starting the script fails by itself then.
  const ending = await runGit(repoPath, ["rev-parse", "--git-dir"], { env, user }).catch(() => null);
  const isRefused = ending?.kind === "exited" && refusesOwner(ending);
  if (!isRefused) return null;
  const detail = `${repoPath} belongs to the user with uid ${owner}, so git refuses to use it as this user (uid ${uid}). Run: chown -R ${uid} ${repoPath}; or, if you trust that user, run: git config --global --add safe.directory ${repoPath}`;
  return { code: "repository_dubious_ownership", detail };
}

/** The programs that start a script, each with its Debian package. */
const runnerTools = { flock: "util-linux", mkfifo: "coreutils" } as const;

/**
 * Checks that the programs are installed that a safe run of a script needs. It only looks for them: a process for each
 * would slow down every start.
 *
 * @throws ProblemError `tool_missing`
 */
export function checkTools(path: string = process.env.PATH ?? ""): void {
  for (const [program, from] of Object.entries(runnerTools)) {
    if (findProgram(program, path) !== null) continue;
    const detail = `${program} is not installed. Install the package ${from}.`;
    throw new ProblemError({ code: "tool_missing", detail });
  }
}
