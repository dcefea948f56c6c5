import "../harness/environment.ts";
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";

const entry = join(import.meta.dirname, "hotpush.ts");
/** As for `npm start`: the tests run hundreds of commands. */
const compiled = join(import.meta.dirname, "../../node_modules/.cache/compiled");

/** Starts a command of Hotpush in `directory`, as a process that a test can kill; as `user`, if this is root. */
export function spawnHotpush(
  directory: string,
  env: NodeJS.ProcessEnv,
  args: readonly string[],
  user: { readonly uid?: number; readonly gid?: number } = {},
): ChildProcess {
  return spawn(process.execPath, [entry, ...args], {
    cwd: directory,
    env: { NODE_COMPILE_CACHE: compiled, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    ...user,
  });
}
