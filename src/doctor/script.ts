import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findProgram, kindOf, statOf } from "../platform/files.ts";
import type { ProblemCode } from "../problems.ts";
import {
  checkScript,
  firstLineOf,
  interpreterWords,
  runnerTools,
  toolsForSigners,
} from "../runner/check-script.ts";
import { deployLogDirectory } from "../runner/environment.ts";
import { type CheckFinding, gitIn, ok, okUnless, problem, quote, skip, warning } from "./check.ts";
import type { DoctorContext } from "./context.ts";
import { hasComposeFile } from "./docker/probe-docker.ts";

const example = fileURLToPath(new URL("../../examples/deploy.sh", import.meta.url));
const bash = "#!/usr/bin/env bash";

/** Checks what the service checks before each run. */
export async function checkDeployScript({
  repoPath,
  scriptEnv,
  scriptUser,
}: DoctorContext): Promise<CheckFinding> {
  const found = await checkScript({ repoPath, environment: scriptEnv, user: scriptUser });
  if (found === null) return ok("deploy.sh can be started");
  if (found.code.startsWith("repository_")) return skip("the repository comes first");
  const text = found.detail.replace(
    /(?<=\.) (?:Run|Copy|Make|Install|Mend|Fix|Repair|Move|Name|Put|Set)\b.*$/s,
    "",
  );
  return problem(text, fixOf(found.code, repoPath));
}

/** A pull brings what was committed: a mode that was only changed here is lost at the first deployment. */
export async function checkCommittedScript({
  repoPath,
  readGit,
  machinePart,
}: DoctorContext): Promise<CheckFinding> {
  if (!statOf(join(repoPath, "deploy.sh"))?.isFile()) return skip("there is no deploy.sh");
  const staged = await readGit("ls-files", "--stage", "--", "deploy.sh");
  if (staged === null) return skip("git does not work in the repository yet");
  if (staged.startsWith("100755")) return ok("committed as executable");
  if (staged === "" && machinePart !== null)
    return ok("not in git: `hotpush init` writes it to each checkout");
  const command = `${gitIn(repoPath)} add --chmod=+x deploy.sh`;
  if (staged === "") {
    const text =
      "deploy.sh is not in git: a clone of the repository cannot be deployed. Add, commit and push it.";
    return warning(text, command);
  }
  const text =
    "deploy.sh is in git without its execute bit, so the next pull removes it here too. Then commit and push.";
  return problem(text, command);
}

/** Anyone who can change or replace the script runs commands with the rights of the service. */
export function checkWritableByOthers({ repoPath }: DoctorContext): CheckFinding {
  const paths = [repoPath, join(repoPath, "deploy.sh"), join(repoPath, ".git")];
  const open = paths.filter((path) => ((statOf(path)?.mode ?? 0) & 0o002) !== 0);
  if (open.length === 0) return ok("only their owner and group can");
  const text = `Every user of this machine can write to ${open.join(" and ")}, and so controls what runs.`;
  return problem(text, `chmod o-w ${open.map(quote).join(" ")}`);
}

/** The command that fixes what `checkScript` has found, by its code. */
function fixOf(code: ProblemCode, repoPath: string): string | undefined {
  const script = join(repoPath, "deploy.sh");
  const file = quote(script);
  const firstLine = `sed -i '1s|.*|${bash}|' ${file}`;
  const commands: Partial<Record<ProblemCode, () => string>> = {
    script_missing: () => installExample(repoPath),
    script_link_broken: () => `rm ${file} && ${installExample(repoPath)}`,
    script_not_a_file: () => `mv ${file} ${quote(`${script}.aside`)} && ${installExample(repoPath)}`,
    script_not_executable: () =>
      isMarkedExecutable(script)
        ? `mount -o remount,exec "$(findmnt --noheadings --output TARGET --target ${file})"`
        : `chmod +x ${file}`,
    script_not_readable: () => `chmod a+rx ${file}`,
    script_without_interpreter: () =>
      firstLineOf(script)?.startsWith("#!")
        ? firstLine
        : `printf '%s\\n' '${bash}' "$(cat ${file})" > ${file}`,
    script_crlf: () =>
      `sed -i 's/\\r$//' ${file} && echo 'deploy.sh text eol=lf' >> ${quote(join(repoPath, ".gitattributes"))}`,
    interpreter_missing: () => installInterpreter(interpreterOf(script)) ?? firstLine,
    interpreter_not_executable: () => `chmod a+rx ${quote(interpreterOf(script))}`,
    temporary_directory_unusable: fixTemporary,
  };
  return commands[code]?.();
}

function installExample(repoPath: string): string {
  const target = quote(join(repoPath, "deploy.sh"));
  return `install -m 755 ${quote(example)} ${target} && ${gitIn(repoPath)} add --chmod=+x deploy.sh`;
}

/** True if the file itself is executable, so that its file system forbids it. */
function isMarkedExecutable(script: string): boolean {
  return (statOf(script)?.mode ?? 0) % 2 === 1;
}

/** The program that runs the script: that of the `#!` line, or the one that `env` finds for it. */
function interpreterOf(script: string): string {
  const [program = "", ...rest] = interpreterWords(firstLineOf(script) ?? "");
  if (!program.endsWith("/env") || kindOf(program) !== "file") return program;
  return rest.find((word) => !word.startsWith("-") && !word.includes("=")) ?? program;
}

const packages: ReadonlyMap<string, string> = new Map([
  ["node", "nodejs"],
  ["php", "php-cli"],
  ["python", "python-is-python3"],
]);

/** Null for a shell: every machine has one, so the script names a wrong path. */
function installInterpreter(interpreter: string): string | null {
  const name = interpreter.split("/").at(-1) ?? "";
  if (/^(?:ba|da|z|k|a)?sh$/.test(name)) return null;
  return `apt-get install -y ${quote(packages.get(name) ?? name)}`;
}

/** The directory for logs is replaced if it exists; else the temporary directory is made usable. */
function fixTemporary(): string {
  const directory = deployLogDirectory(null);
  if (!["missing", "inaccessible"].includes(kindOf(directory))) return `rm -rf ${quote(directory)}`;
  const path = quote(tmpdir());
  return `{ [ -d ${path} ] || rm -f ${path}; } && mkdir -p ${path} && chmod 1777 ${path}`;
}

/** A program, and the Debian package that has it. */
type Tool = readonly [program: string, packages: string];

const git: Tool = ["git", "git"];

/** The programs that the service, the example of a deploy.sh, or `hotpush rollout` starts. */
export async function checkInstalledTools(context: DoctorContext): Promise<CheckFinding> {
  const needed = [...runnerTools, git, ...(await toolsForRemote(context)), ...otherTools(context)];
  const missing = needed.filter(([program]) => findProgram(program, context.scriptEnv.PATH ?? "") === null);
  const faults = missing.map(([program, packages]) =>
    problem(
      `${program} is not installed, or not in the PATH of the service. As root:`,
      `apt-get install -y ${packages}`,
    ),
  );
  return okUnless(faults, needed.map(([program]) => program).join(", "));
}

async function toolsForRemote({ remote }: DoctorContext): Promise<readonly Tool[]> {
  const answer = await remote();
  return "url" in answer && answer.url.scheme === "ssh" ? [["ssh", "openssh-client"]] : [];
}

function otherTools({ allowedSigners, repoPath, settings }: DoctorContext): readonly Tool[] {
  const docker: Tool = ["docker", "docker.io docker-compose docker-buildx"];
  const signing = toolsForSigners(allowedSigners, repoPath).filter(([program]) => program !== "git");
  return [...(hasComposeFile(repoPath, settings.env) ? [docker] : []), ...signing];
}
