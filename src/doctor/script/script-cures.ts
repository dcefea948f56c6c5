import { statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Problem, ProblemCode } from "../../problems.ts";
import type { Cure } from "../check.ts";
import { quote } from "../quote.ts";

const example = fileURLToPath(new URL("../../../examples/deploy.sh", import.meta.url));
const bash = "#!/usr/bin/env bash";

/** The command that mends what `checkScript` has found, by its code. */
export function cureOfScript({ code, detail }: Problem, repoPath: string): Cure {
  const script = join(repoPath, "deploy.sh");
  const file = quote(script);
  const firstLine = `sed -i '1s|.*|${bash}|' ${file}`;
  const cures: Partial<Record<ProblemCode, Cure>> = {
    script_missing: { command: installExample(repoPath) },
    script_link_broken: { command: `rm ${file} && ${installExample(repoPath)}` },
    script_not_a_file: { command: `mv ${file} ${quote(`${script}.aside`)} && ${installExample(repoPath)}` },
    script_not_executable: isMarkedExecutable(script)
      ? { command: `mount -o remount,exec "$(findmnt --noheadings --output TARGET --target ${file})"` }
      : { command: `chmod +x ${file}` },
    script_not_readable: { command: `chmod a+rx ${file}` },
    script_without_interpreter: {
      command: detail.includes("names no program")
        ? firstLine
        : `printf '%s\\n' '${bash}' "$(cat ${file})" > ${file}`,
    },
    script_crlf: {
      command: `sed -i 's/\\r$//' ${file} && echo 'deploy.sh text eol=lf' >> ${quote(join(repoPath, ".gitattributes"))}`,
    },
    interpreter_missing: runsShell(detail) ? { command: firstLine } : installInterpreter(detail),
    interpreter_not_executable: { command: `chmod a+rx ${quote(programIn(detail))}` },
    temporary_directory_unusable: mendTemporary(detail),
  };
  return cures[code] ?? {};
}

function installExample(repoPath: string): string {
  const target = quote(join(repoPath, "deploy.sh"));
  return `install -m 755 ${quote(example)} ${target} && git -C ${quote(repoPath)} add --chmod=+x deploy.sh`;
}

/** True where the file itself may be executed, so that it is the file system which forbids it. */
function isMarkedExecutable(script: string): boolean {
  return (statSync(script, { throwIfNoEntry: false })?.mode ?? 0) % 2 === 1;
}

function programIn(detail: string): string {
  return /names (\S+), which/.exec(detail)?.[1] ?? "";
}

function runsShell(detail: string): boolean {
  return /(?:^|\/)(?:ba|da|z|k|a)?sh$/.test(programIn(detail));
}

function installInterpreter(detail: string): Cure {
  const name = programIn(detail).split("/").at(-1) ?? "";
  const packages: Readonly<Record<string, string>> = {
    node: "nodejs",
    php: "php-cli",
    python: "python-is-python3",
  };
  return { command: `apt-get install -y ${quote(packages[name] ?? name)}` };
}

function mendTemporary(detail: string): Cure {
  const directory = /Run: rm -rf (\S+);/.exec(detail)?.[1];
  if (directory !== undefined) return { command: `rm -rf ${quote(directory)}` };
  const path = quote(tmpdir());
  return { command: `{ [ -d ${path} ] || rm -f ${path}; } && mkdir -p ${path} && chmod 1777 ${path}` };
}
