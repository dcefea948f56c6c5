import { openFile } from "./files.ts";
import { runCommand } from "./run-command.ts";

/** Exit code of flock if another process has the lock. Its default, 1, is also that of a fault. */
const busyExitCode = 75;

/**
 * Locks the open file `fd`, as flock(2) does, by util-linux's `flock` on the inherited descriptor: the lock belongs to
 * the open file, so it is ours as long as we, or a child that inherits it, have it open. Node has no call for that.
 *
 * @param options.waitS seconds to wait if another process has it; null: without a limit. Ends when `signal` is aborted
 * @returns whether the lock is ours now
 * @throws if flock fails, with its message, or is missing; the system's error if it cannot be run
 */
export async function flock(
  fd: number,
  { waitS, signal }: { readonly waitS: number | null; readonly signal?: AbortSignal | undefined },
): Promise<boolean> {
  const limits = waitS === null ? [] : ["--timeout", String(waitS)];
  const ending = await runCommand({
    argv: ["flock", "--exclusive", ...limits, "--conflict-exit-code", String(busyExitCode), "3"],
    heldDescriptor: fd,
    signal,
  });
  if (ending.kind === "not_found") throw new Error("there is no program flock");
  if (ending.kind !== "exited") return false;
  if (ending.code === 0 || ending.code === busyExitCode) return ending.code === 0;
  throw new Error(ending.lastLines.join("\n") || `flock ended with exit code ${ending.code}`);
}

/** A right that one of the processes that share a directory has. */
export type HeldLock = { readonly release: () => void };

/**
 * Waits for the lock on the file at `path`. The kernel releases it when its holder dies, however it dies, so it is never stale.
 *
 * @param options.onWait called if another instance has it now
 * @returns null if `signal` was aborted first
 */
export async function waitForLock(
  path: string,
  { signal, onWait }: { readonly signal: AbortSignal; readonly onWait: () => void },
): Promise<HeldLock | null> {
  using onFailure = new DisposableStack();
  const { fd } = onFailure.use(openFile(path, "a"));
  if (!(await flock(fd, { waitS: 0 }))) {
    onWait();
    await flock(fd, { waitS: null, signal });
  }
  if (signal.aborted) return null;
  const held = onFailure.move();
  return { release: () => held.dispose() };
}
