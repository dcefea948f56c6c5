import { FlockFailure, flock } from "../platform/file-lock.ts";
import { ProblemError } from "../problems.ts";

/** What became of an attempt: `interrupted` where flock, or who waits for it, was asked to stop. */
export type Attempt = "locked" | "busy" | "interrupted";

/**
 * Tries to lock the open file `descriptor` for a roll-out; waits up to `waitS` seconds where another process has the lock,
 * or until `signal` is aborted.
 *
 * @param options.path of the file, to tell where it cannot be locked
 * @throws ProblemError `tool_missing` where there is no flock, `state_unusable` where it fails
 */
export async function takeLock(
  descriptor: number,
  options: { readonly path: string; readonly waitS: number; readonly signal?: AbortSignal | undefined },
): Promise<Attempt> {
  const { path, waitS, signal } = options;
  try {
    if (await flock(descriptor, { waitS, signal })) return "locked";
    return signal?.aborted ? "interrupted" : "busy";
  } catch (error) {
    if (wasEndedWithUs(error)) return "interrupted";
    throw asProblem(path, error as NodeJS.ErrnoException);
  }
}

/** flock is of our process group: who ends that may have ended it before we are told. */
function wasEndedWithUs(error: unknown): boolean {
  return error instanceof FlockFailure && (error.killedBy === "SIGTERM" || error.killedBy === "SIGINT");
}

function asProblem(path: string, error: NodeJS.ErrnoException): ProblemError {
  if (error.code === "ENOENT") {
    const detail = "The program flock could not be started. Install util-linux. Nothing was changed.";
    return new ProblemError({ code: "tool_missing", detail }, error);
  }
  const detail = `${path} could not be locked (${error.message}). Nothing was changed. Roll out again; where that fails in the same way, set STATE_PATH to a directory whose file system has locks.`;
  return new ProblemError({ code: "state_unusable", detail }, error);
}
