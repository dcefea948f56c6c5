import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { ProblemError } from "../../problems.ts";

/** `${NAME:?message}` with a "-" in the message, where comments have been taken away. */
const misread = /\$\{([A-Za-z_]\w*):?\?[^}]*-[^}]*\}/;

/**
 * Refuses stack files in which a variable is required with a message that has a "-" in it: `docker stack deploy` looks for
 * defaults (`${NAME-default}`) before messages, and takes what comes after the "-" for the value, set or not. A secret
 * would silently be the end of a sentence. (Docker 28, `cli/compose/template`: the substitutions are tried in that order.)
 *
 * @param files paths, seen from `projectDirectory`
 * @throws ProblemError `compose_invalid` with the line to change
 */
export function refuseMisread(files: readonly string[], projectDirectory: string): void {
  for (const file of files) {
    const lines = readFileSync(resolve(projectDirectory, file), "utf8").split("\n");
    const index = lines.findIndex((line) => misread.test(withoutComment(line)));
    if (index < 0) continue;
    const name = misread.exec(lines[index] ?? "")?.[1];
    const text = `${file}, line ${index + 1}: docker stack deploy would take what comes after the "-" in the message for ${name} to be its value. Write the message without a "-". Nothing was changed.`;
    throw new ProblemError({ code: "compose_invalid", detail: text });
  }
}

function withoutComment(line: string): string {
  return line.replace(/(^|\s)#.*$/, "$1");
}
