import { type ChildProcess, spawn } from "node:child_process";
import { ProblemError } from "../problems.ts";

/** Exit code by which flock says that somebody else has the lock; its own default, 1, is also that of a fault. */
const busyExitCode = 75;

/** What became of an attempt: `interrupted` where flock, or who waits for it, was asked to stop. */
export type FlockResult = "locked" | "busy" | "interrupted";

/**
 * Locks the open file `descriptor` by util-linux's `flock`, for which Node has no call; waits up to `waitS` seconds where
 * another process has the lock, or until `signal` is aborted.
 *
 * @param options.path of the file, to tell where it cannot be locked
 * @throws ProblemError `tool_missing` where there is no flock, `state_unusable` where it fails
 */
export async function flock(
  descriptor: number,
  options: { readonly path: string; readonly waitS: number; readonly signal?: AbortSignal | undefined },
): Promise<FlockResult> {
  const { path, waitS, signal } = options;
  const limits = ["--timeout", String(waitS), "--conflict-exit-code", String(busyExitCode)];
  const child = spawn("flock", ["--exclusive", ...limits, "3"], {
    stdio: ["ignore", "ignore", "pipe", descriptor],
    ...(signal ? { signal } : {}),
  });
  const { code, killedBy, said } = await endOf(child, path);
  if (signal?.aborted) return "interrupted";
  if (code === 0) return "locked";
  if (code === busyExitCode) return "busy";
  // It is of our process group: who ends that may have ended it before we are told.
  if (killedBy === "SIGTERM" || killedBy === "SIGINT") return "interrupted";
  throw cannotLock(path, said || `flock ended with ${killedBy ?? `exit code ${code}`}`);
}

interface FlockEnd {
  readonly code: number | null;
  readonly killedBy: NodeJS.Signals | null;
  /** What it wrote of its failure. */
  readonly said: string;
}

function endOf(child: ChildProcess, path: string): Promise<FlockEnd> {
  let said = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
  return new Promise((resolve, reject) => {
    child.on("error", (error: NodeJS.ErrnoException) => {
      if (error.name !== "AbortError") reject(cannotStart(path, error));
    });
    child.on("close", (code, killedBy) => resolve({ code, killedBy, said: said.trim() }));
  });
}

function cannotStart(path: string, error: NodeJS.ErrnoException): ProblemError {
  if (error.code !== "ENOENT") return cannotLock(path, error.message, error);
  const detail = "The program flock could not be started. Install util-linux. Nothing was changed.";
  return new ProblemError({ code: "tool_missing", detail }, error);
}

function cannotLock(path: string, reason: string, cause?: unknown): ProblemError {
  const detail = `${path} could not be locked (${reason}). Nothing was changed. Roll out again; where that fails in the same way, set STATE_PATH to a directory whose file system has locks.`;
  return new ProblemError({ code: "state_unusable", detail }, cause);
}
