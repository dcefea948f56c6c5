import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Place } from "./doctor.ts";
import { type Scope, temporaryDirectory } from "./temporary.ts";

/** Runs commands, each an argument, up to `--`, and then what comes after it; the rest of the script is put in front. */
const runAll =
  'for command; do [ "$command" = -- ] && break; sh -c "$command" >&2; shift; done; shift; exec "$@"';

/**
 * What to put before a command line so that `commands` are run first, in mounts of its own where /etc is a copy: what
 * they install, enable or add to a group is gone afterwards, and the machine is as it was.
 */
export function inOwnEtc(scope: Scope, commands: readonly string[]): readonly string[] {
  const copy = join(temporaryDirectory(scope), "etc");
  execFileSync("cp", ["-a", "/etc", copy]);
  const script = `set -e; mount --bind ${copy} /etc; ${runAll}`;
  return ["unshare", "--mount", "sh", "-c", script, "sh", ...commands, "--"];
}

export const containerId = "0123456789abcdef".repeat(4);

/**
 * What to put before a command line so that its process finds itself in a container: Docker mounts /etc/hostname into
 * each, from a directory that bears the container's id. `mounted` are the other mounts of it; `commands` are run first.
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
