import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Place } from "./doctor.ts";
import { type Scope, temporaryDirectory } from "./temporary.ts";

/** Runs the commands before `--`, each an argument, and then the command line after it. */
const runAll =
  'for command; do [ "$command" = -- ] && break; sh -c "$command" >&2; shift; done; shift; exec "$@"';

/**
 * A prefix that runs `commands` first, and then a command line, with mounts of its own and a copy of /etc. Changes to
 * packages, services or groups disappear afterwards, and the machine stays the same.
 */
export function inOwnEtc(scope: Scope, commands: readonly string[]): readonly string[] {
  const copy = join(temporaryDirectory(scope), "etc");
  mkdirSync(copy);
  // Without the server that may be set up here.
  const files = readdirSync("/etc").filter((name) => name !== "hotpush");
  execFileSync("cp", ["-a", ...files.map((name) => `/etc/${name}`), copy]);
  const script = `set -e; mount --bind ${copy} /etc; ${runAll}`;
  return ["unshare", "--mount", "sh", "-c", script, "sh", ...commands, "--"];
}

export const containerId = "0123456789abcdef".repeat(4);

/**
 * A prefix that makes a command line appear to run in a container: Docker mounts /etc/hostname into each, from a directory
 * named after the container's id. `mounted` are the container's other mounts; `commands` run first.
 */
export function asInContainer(
  { root }: Place,
  mounted: readonly string[] = [],
  commands: readonly string[] = [],
): readonly string[] {
  const directory = join(root, "containers", containerId);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "hostname"), "shop\n");
  const binds = mounted.map((path) => `mount --bind '${path}' '${path}'`);
  const script = `set -e; ${[`mount --bind ${directory}/hostname /etc/hostname`, ...binds].join("; ")}; ${runAll}`;
  return ["unshare", "--mount", "sh", "-c", script, "sh", ...commands, "--"];
}
