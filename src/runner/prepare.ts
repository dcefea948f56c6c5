import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { busyExitCode } from "./flock.ts";
import type { RunDirectory } from "./run-directory.ts";

const preparePath = fileURLToPath(new URL("prepare.sh", import.meta.url));

/**
 * Takes the lock of a run, whose file is open as `lockFd`, and makes the pipe for its output. Node has no call for
 * either; one process does both, because what starting one takes, nothing else gets done in.
 *
 * @throws Error with a `code` where it cannot be done at the moment
 */
export async function prepareRun({ path }: RunDirectory, lockFd: number): Promise<void> {
  const child = spawn(preparePath, [path], { stdio: ["ignore", "ignore", "pipe", lockFd] });
  const said: Buffer[] = [];
  child.stderr?.on("data", (chunk: Buffer) => said.push(chunk));
  const [code]: (number | null)[] = await once(child, "close");
  if (code === 0) return;
  if (code === busyExitCode) throw new Error("the lock of a new run is held");
  const reason = Buffer.concat(said).toString().trim() || `exit code ${code ?? "unknown"}`;
  throw Object.assign(new Error(`its lock and the pipe for its output could not be made: ${reason}`), {
    code,
  });
}
