import { type ChildProcess, spawn } from "node:child_process";

/** Exit code of flock if another process has the lock. Its default, 1, is also that of a fault. */
const busyExitCode = 75;

/** flock itself failed; the message is its error output. The state of the lock is unknown. */
export class FlockFailure extends Error {
  override readonly name = "FlockFailure";
  readonly killedBy: NodeJS.Signals | null;

  constructor({ code, killedBy, said }: FlockEnd) {
    super(said || `flock ended with ${killedBy ?? `exit code ${code}`}`);
    this.killedBy = killedBy;
  }
}

/**
 * Locks the open file `fd`, as flock(2) does, by util-linux's `flock` on the inherited descriptor: the lock belongs to
 * the open file, so it is ours as long as we, or a child that inherits it, have it open. Node has no call for that.
 *
 * @param options.waitS seconds to wait for its holder; null: as long as it takes. Not beyond the abortion of `signal`
 * @returns whether the lock is ours now
 * @throws FlockFailure if flock fails, and the system's error if it cannot be run
 */
export async function flock(
  fd: number,
  { waitS, signal }: { readonly waitS: number | null; readonly signal?: AbortSignal | undefined },
): Promise<boolean> {
  const limits = waitS === null ? [] : ["--timeout", String(waitS)];
  const child = spawn(
    "flock",
    ["--exclusive", ...limits, "--conflict-exit-code", String(busyExitCode), "3"],
    {
      stdio: ["ignore", "ignore", "pipe", fd],
      ...(signal ? { signal } : {}),
    },
  );
  const end = await endOf(child);
  if (end.code === 0) return true;
  if (end.code === busyExitCode || signal?.aborted) return false;
  throw new FlockFailure(end);
}

interface FlockEnd {
  readonly code: number | null;
  readonly killedBy: NodeJS.Signals | null;
  /** What it wrote of its failure. */
  readonly said: string;
}

function endOf(child: ChildProcess): Promise<FlockEnd> {
  let said = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
  return new Promise((resolve, reject) => {
    child.on("error", (error) => {
      if (error.name !== "AbortError") reject(error);
    });
    child.on("close", (code, killedBy) => resolve({ code, killedBy, said: said.trim() }));
  });
}
