import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { type ComposeTarget, composeFileNames, namedFiles } from "../../platform/compose/commands.ts";
import type { ComposeService } from "../../platform/compose/model.ts";
import { withDotenv } from "../../platform/env-file.ts";
import { ProblemError } from "../../problems.ts";

/** Labels of the container and of the Swarm service: Hotpush's may be in either place. */
export function labelsOf(service: ComposeService): Readonly<Record<string, string>> {
  return { ...service.deploy?.labels, ...service.labels };
}

const stackFileNames = ["stack.yaml", "stack.yml", "docker-stack.yaml", "docker-stack.yml"];

/**
 * The files of the stack, which `docker stack deploy` does not look for by itself: the given ones, else COMPOSE_FILE,
 * else `stack.yaml`, `docker-stack.yaml` or the compose file in the project's directory. Files that only compose adds by
 * itself (`compose.override.yaml`) do not belong to a stack.
 */
export function stackFiles(target: ComposeTarget, env: NodeJS.ProcessEnv): readonly string[] {
  if (target.files.length > 0) return target.files;
  const named = namedFiles(env);
  if (named.length > 0) return named;
  const found = [...stackFileNames, ...composeFileNames].find((name) =>
    existsSync(join(target.projectDirectory, name)),
  );
  return found === undefined ? [] : [found];
}

/**
 * The variables for a stack file: `env`, the ones in `.env` beside it (compose reads that file, `docker stack deploy`
 * does not: this way both see the same), and HOTPUSH_COMMIT, twelve digits of the commit.
 *
 * @throws ProblemError `configuration_invalid` if `.env` exists and cannot be read
 */
export function stackEnvironment(
  env: NodeJS.ProcessEnv,
  projectDirectory: string,
  commit: string,
): NodeJS.ProcessEnv {
  return { ...withDotenv(env, projectDirectory), HOTPUSH_COMMIT: commit.slice(0, 12) };
}

/**
 * `${NAME:?message}` with a "-" in the message, and `${NAME-default}` with ":-" in the default. A doubled dollar sign is
 * only text.
 */
const misread = /(?<!\$)(?:\$\$)*\$\{([A-Za-z_]\w*)(?::?\?[^}]*-|-[^}]*:-)[^}]*\}/;

/**
 * Refuses stack files that `docker stack deploy` and compose read differently. It looks for defaults (`${NAME-default}`)
 * before messages, and takes the text after the "-" in `${NAME:?message}` as the value, even if the variable is set. A
 * secret would silently become the end of a sentence. (Seen with Docker 28; `cli/compose/template` tries the
 * substitutions in that order.)
 *
 * @param files paths, relative to `projectDirectory`
 * @throws ProblemError `compose_invalid` with the line to change
 */
export function refuseMisreadVariables(files: readonly string[], projectDirectory: string): void {
  for (const file of files) {
    // Comments stay as empty lines, so that lines can be counted.
    const text = readFileSync(resolve(projectDirectory, file), "utf8").replace(/^[ \t]*#.*$/gm, "");
    const found = misread.exec(text);
    if (found === null) continue;
    const line = text.slice(0, found.index).split("\n").length;
    const detail = `${file}, line ${line}: docker stack deploy would take what comes after the "-" in \${${found[1]}…} to be the value of ${found[1]}, set or not. Write the message (or the default) without a "-". Nothing was changed.`;
    throw new ProblemError({ code: "compose_invalid", detail });
  }
}
