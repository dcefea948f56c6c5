import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { ProblemError } from "../../problems.ts";

/**
 * `${NAME:?message}` with a "-" in the message, and `${NAME-default}` with ":-" in the default; a dollar sign that is
 * written twice is only text.
 */
const misread = /(?<!\$)(?:\$\$)*\$\{([A-Za-z_]\w*)(?::?\?[^}]*-|-[^}]*:-)[^}]*\}/;

/**
 * Refuses stack files that `docker stack deploy` reads otherwise than compose: it looks for defaults (`${NAME-default}`)
 * before messages, and takes what comes after the "-" in `${NAME:?message}` for the value, set or not. A secret would
 * silently be the end of a sentence. (Seen with Docker 28; `cli/compose/template` tries the substitutions in that order.)
 *
 * @param files paths, seen from `projectDirectory`
 * @throws ProblemError `compose_invalid` with the line to change
 */
export function refuseMisread(files: readonly string[], projectDirectory: string): void {
  for (const file of files) {
    // Comments stay as empty lines, so that lines can be counted.
    const text = readFileSync(resolve(projectDirectory, file), "utf8").replace(/^\s*?#.*$/gm, "");
    const found = misread.exec(text);
    if (found === null) continue;
    const line = text.slice(0, found.index).split("\n").length;
    const detail = `${file}, line ${line}: docker stack deploy would take what comes after the "-" in \${${found[1]}…} to be the value of ${found[1]}, set or not. Write the message (or the default) without a "-". Nothing was changed.`;
    throw new ProblemError({ code: "compose_invalid", detail });
  }
}
