import { constants } from "node:fs";
import { join } from "node:path";
import { readSigners } from "#config/signers-file";
import type { Log } from "#log";
import { findProgram, isAllowed, kindOf, ownUid } from "#platform/files";
import { readForeignFile } from "#platform/foreign-files";
import { type Problem, ProblemError } from "#problems";

import { checkDeployLogDirectory } from "./environment.ts";
import { checkOwner, checkOwnership, checkRepository } from "./repository.ts";
import type { CheckedScript } from "./script.ts";

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

/** Logs what would keep the deploy script from starting, if anything. Never rejects: a shortage may pass. */
export async function logScriptFault(project: CheckedScript, log: Log): Promise<void> {
  try {
    const problem = await checkScript(project);
    if (!problem) return;
    log.error({ event: "script.unusable", code: problem.code }, `No push can be deployed: ${problem.detail}`);
  } catch (error) {
    log.warn({ event: "script.unchecked", err: error }, "The deploy script could not be checked");
  }
}

function checkFile(script: string): Problem | null {
  switch (kindOf(script)) {
    case "missing":
      return {
        code: "script_missing",
        detail: `${script} does not exist. Copy examples/deploy.sh there, run: chmod +x deploy.sh, and commit it.`,
      };
    case "broken-link":
      return {
        code: "script_link_broken",
        detail: `${script} is a link to a file that does not exist. Fix the link, or put the script itself there.`,
      };
    case "inaccessible":
      return {
        code: "script_not_readable",
        detail: `This user (uid ${ownUid()}) may not access ${script}. Run: chmod a+rx ${script}`,
      };
    case "directory":
    case "other":
      return {
        code: "script_not_a_file",
        detail: `${script} is not a plain file. Move it away and put the script there.`,
      };
    case "file":
      return checkModes(script);
  }
}

function checkModes(script: string): Problem | null {
  if (!isAllowed(script, constants.X_OK)) {
    return {
      code: "script_not_executable",
      detail: `${script} is not executable, or its file system is mounted noexec. Run: git update-index --chmod=+x deploy.sh, commit and push; here: chmod +x ${script}`,
    };
  }
  if (!isAllowed(script, constants.R_OK)) {
    return {
      code: "script_not_readable",
      detail: `This user (uid ${ownUid()}) may not read ${script}. Run: chmod a+rx ${script}`,
    };
  }
  return null;
}

/** The longest `#!` line that Linux reads. */
const shebangBytes = 256;

/** What is wrong with the first line of `script` or with the program that it names, or null. */
function checkInterpreterLine(script: string, searchPath: string): Problem | null {
  const line = firstLineOf(script);
  if (line === null) return null;
  if (!line.startsWith("#!")) {
    return {
      code: "script_without_interpreter",
      detail: `${script} does not begin with #!, so no program is named to run it. Make its first line: #!/usr/bin/env bash`,
    };
  }
  if (line.endsWith("\r")) {
    return {
      code: "script_crlf",
      detail: `${script} has Windows line endings. Run: sed -i 's/\\r$//' ${script}, add the line "deploy.sh text eol=lf" to .gitattributes, and commit both.`,
    };
  }
  const [interpreter = "", ...rest] = interpreterWords(line);
  return checkInterpreter(script, interpreter) ?? checkEnv(script, interpreter, rest, searchPath);
}

/** The first line of `script`, as far as Linux reads a `#!` line; null if this process must not read it. */
export function firstLineOf(script: string): string | null {
  try {
    const start = readForeignFile(script, { mostBytes: shebangBytes, isCut: true });
    return start.toString().split("\n")[0] ?? "";
  } catch {
    return null; // Its owner may have a link there to what only that user reaches.
  }
}

/** The program that a `#!` line names, and its arguments. */
export function interpreterWords(line: string): readonly string[] {
  return line
    .slice(2)
    .trim()
    .split(/[ \t]+/);
}

function checkInterpreter(script: string, interpreter: string): Problem | null {
  if (interpreter === "") {
    return {
      code: "script_without_interpreter",
      detail: `${script} begins with #! and names no program. Make its first line: #!/usr/bin/env bash`,
    };
  }
  if (kindOf(interpreter) !== "file") {
    return {
      code: "interpreter_missing",
      detail: `The first line of ${script} names ${interpreter}, which does not exist. Install it, or name another program there.`,
    };
  }
  if (!isAllowed(interpreter, constants.X_OK)) {
    return {
      code: "interpreter_not_executable",
      detail: `The first line of ${script} names ${interpreter}, which is not executable. Name another program there.`,
    };
  }
  return null;
}

/** `#!/usr/bin/env bash` finds bash in the PATH. */
function checkEnv(
  script: string,
  interpreter: string,
  rest: readonly string[],
  searchPath: string,
): Problem | null {
  if (!interpreter.endsWith("/env")) return null;
  const program = rest.find((word) => !word.startsWith("-") && !word.includes("="));
  if (program === undefined || program.includes("/")) return null;
  if (findProgram(program, searchPath) !== null) return null;
  return {
    code: "interpreter_missing",
    detail: `The first line of ${script} names ${program}, which is not in the PATH. Install it, or name another program there.`,
  };
}

/** The programs that start a script, each with its Debian package. */
export const runnerTools = [
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
  for (const [program, from] of [...runnerTools, ...forSigners]) {
    if (findProgram(program, path) !== null) continue;
    const detail = `${program} is not installed. Install the package ${from}.`;
    throw new ProblemError({ code: "tool_missing", detail });
  }
}
