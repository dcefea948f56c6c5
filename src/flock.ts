import { type ChildProcess, spawn } from "node:child_process";

/** Exit code by which flock says that somebody else has the lock; its own default, 1, is also that of a fault. */
export const busyExitCode = 75;

/**
 * Locks the open file `fd`, as flock(2) does, by util-linux's `flock` on the inherited descriptor: the lock belongs to
 * the open file, so it is ours as long as we, or a child that inherits it, have it open. Node has no call for that.
 *
 * @param options.isWaiting wait until the lock is free, or `signal` is aborted
 * @returns whether the lock is ours now
 * @throws Error where flock cannot be run
 */
export async function flock(
  fd: number,
  options: { isWaiting: boolean; signal?: AbortSignal },
): Promise<boolean> {
  const mode = options.isWaiting ? [] : ["--nonblock"];
  const child = spawn("flock", ["--exclusive", ...mode, "--conflict-exit-code", String(busyExitCode), "3"], {
    stdio: ["ignore", "ignore", "ignore", fd],
    ...(options.signal ? { signal: options.signal } : {}),
  });
  const code = await exitCodeOf(child);
  if (code === 0) return true;
  if (code === busyExitCode || options.signal?.aborted) return false;
  throw new Error(`flock ended with ${code === null ? "a signal" : `exit code ${code}`}`);
}

function exitCodeOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.on("error", (error) => (error.name === "AbortError" ? resolve(null) : reject(error)));
    child.on("exit", (code) => resolve(code));
  });
}
