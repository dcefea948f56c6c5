import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { askCompose } from "../../platform/compose/ask-compose.ts";
import { type ComposeTarget, configCommand } from "../../platform/compose/commands.ts";
import { composeFileNames, namedFiles } from "../../platform/compose/file-names.ts";
import type {
  ComposeHealthcheck,
  ComposeModel,
  ComposePort,
  ComposeService,
} from "../../platform/compose/model.ts";
import type { ComposeOptions } from "../../platform/compose/run-compose.ts";
import { withDotenv } from "../../platform/env-file.ts";
import { ProblemError } from "../../problems.ts";

/** The parts of a stack file that are used: compose's model of it, with the settings that only Swarm reads. */
export interface StackModel extends Omit<ComposeModel, "services"> {
  readonly services: Readonly<Record<string, StackModelService>>;
  readonly "x-hotpush"?: { readonly engine?: unknown; readonly stack?: unknown } | null;
}

export interface StackModelService extends Omit<ComposeService, "deploy" | "ports"> {
  readonly deploy?: StackDeploy;
  readonly healthcheck?: ComposeHealthcheck;
  readonly ports?: readonly StackPort[];
  readonly stop_grace_period?: string;
}

export interface StackDeploy {
  readonly mode?: string;
  readonly replicas?: number | string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly update_config?: UpdateConfig;
  readonly rollback_config?: UpdateConfig;
  readonly restart_policy?: { readonly condition?: string };
}

export interface UpdateConfig {
  readonly parallelism?: number;
  readonly delay?: string;
  readonly monitor?: string;
  readonly order?: string;
  readonly failure_action?: string;
}

export interface StackPort extends ComposePort {
  readonly mode?: string;
}

/** Labels of the container and of the Swarm service: Hotpush's may be in either place. */
export function labelsOf(service: StackModelService): Readonly<Record<string, string>> {
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
 * Compose's model of the stack file.
 *
 * @throws ProblemError `compose_invalid` with compose's message
 */
export async function readStackModel(options: ComposeOptions): Promise<StackModel> {
  return JSON.parse(await askCompose(options, configCommand(options.target))) as StackModel;
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
    const text = readFileSync(resolve(projectDirectory, file), "utf8").replace(/^\s*?#.*$/gm, "");
    const found = misread.exec(text);
    if (found === null) continue;
    const line = text.slice(0, found.index).split("\n").length;
    const detail = `${file}, line ${line}: docker stack deploy would take what comes after the "-" in \${${found[1]}…} to be the value of ${found[1]}, set or not. Write the message (or the default) without a "-". Nothing was changed.`;
    throw new ProblemError({ code: "compose_invalid", detail });
  }
}
