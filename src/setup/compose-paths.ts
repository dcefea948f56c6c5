import { dirname, resolve } from "node:path";
import { parse } from "yaml";
import { attempt, kindOf } from "#platform/files";
import { readIfThere } from "./planned-file.ts";
import type { SetupProject } from "./project.ts";
import { real } from "./server.ts";

/** The image of `run` has files of its own there, which a mount would hide. */
const ofImage =
  /^\/(?:$|(?:bin|boot|dev|lib\w*|proc|run|sbin|sys)(?:\/|$)|tmp$|etc(?:$|\/ss[hl])|usr(?:$|\/(?!local\/share\/.))|var(?:$|\/(?:cache|lib|run|tmp)(?:$|\/(?:docker|hotpush))))/;

/** Whether `run` can have this directory at its own path. */
export function canBeMounted(path: string): boolean {
  return kindOf(path) === "directory" && !ofImage.test(path);
}

/** The members of a compose file that name files which compose itself reads; `file` and `path` are in some of them. */
const naming =
  /^(?:additional_contexts|build|context|env_file|extends|file|include|label_file|path|project_directory)$/;

/** What is in these is no member of compose's. */
const free = /^(?:annotations|args|driver_opts|environment|labels|options|sysctls|x-.*)$/;
/** The members of these have any names. */
const named = /^(?:additional_contexts|configs|secrets|services)$/;

/** Tags of compose's own are no fault. */
const options = { merge: true, logLevel: "error" } as const;

/**
 * The directories of what compose reads of a project, links followed: environment files, included and extended files, labels,
 * build contexts, configs and secrets. Most lie in the checkout. If one is missed, compose itself says so in `run`.
 */
export function readPaths(project: Pick<SetupProject, "root" | "composeFiles" | "env">): readonly string[] {
  const { root, composeFiles, env } = project;
  const found = new Set<string>();
  const read = (path: string) => {
    if (found.has(path) || kindOf(path) === "missing") return;
    found.add(path);
    if (/\.ya?ml$/.test(path))
      visit(
        attempt(() => parse(readIfThere(path) ?? "", options), null),
        "",
        path,
      );
  };
  // An alias may lead back to what holds it.
  const visited = new Map<string, Set<object>>();
  const visit = (value: unknown, name: string, file: string): void => {
    if (typeof value === "string" && naming.test(name))
      read(resolve(dirname(file), interpolated(value.replace(/^\w+=/, ""), { ...process.env, ...env })));
    if (typeof value !== "object" || value === null || visited.get(name)?.has(value)) return;
    visited.set(name, (visited.get(name) ?? new Set()).add(value));
    for (const [key, one] of Object.entries(value).filter(([key]) => named.test(name) || !free.test(key)))
      visit(one, Array.isArray(value) || name === "additional_contexts" ? name : key, file);
  };
  for (const path of [resolve(root, ".env"), ...composeFiles]) read(path);
  const paths = [...found].flatMap((path) => [path, real(path)]);
  const directories = paths.map((path) => (kindOf(path) === "directory" ? path : dirname(path)));
  return [...new Set(directories)].filter(canBeMounted);
}

const longestPath = 4_096;

/** The path with the variables that are known, or their defaults. */
function interpolated(path: string, env: NodeJS.ProcessEnv): string {
  if (path.length > longestPath) return path;
  const variable = /\$\{(\w+)(?::?-([^{}]*))?[^{}]*\}|\$(\w+)/g;
  return path.replace(variable, (_, braced, fallback, plain) => env[braced ?? plain] || fallback || "");
}
