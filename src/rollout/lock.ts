import { spawn } from "node:child_process";
import { once } from "node:events";
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";
import { ProblemError } from "../problems.ts";
import { stateFault } from "./state-fault.ts";

/** The lock of a project's roll-outs, held. */
export interface RolloutLock {
  /** For the children that change containers: the lock then lasts until they have ended, even if this process is killed. */
  readonly descriptor: number;
  readonly release: () => Promise<void>;
}

/** Told which process holds the lock that is waited for. */
export type OnWait = (holder: string) => void;

/**
 * Takes the lock at `path`, waiting for another roll-out up to `waitS` seconds. The kernel drops it with the last
 * process that holds it, so it is never stale. Node has no flock(2): util-linux's `flock` takes it on our descriptor.
 *
 * @throws ProblemError `rollout_locked` when the other one is not done by then, `state_unusable` or `tool_missing` where
 * there can be no lock
 */
export async function lockRollout(
  path: string,
  waitS: number,
  onWait: OnWait = () => {},
): Promise<RolloutLock> {
  try {
    return await lock(path, waitS, onWait);
  } catch (error) {
    throw stateFault(path, error, "Nothing was changed.");
  }
}

async function lock(path: string, waitS: number, onWait: OnWait): Promise<RolloutLock> {
  await mkdir(dirname(path), { recursive: true });
  const file = await open(path, "a+");
  try {
    if (!(await takeLock(file.fd, 0))) await waitForLock(file, path, waitS, onWait);
    await file.truncate(0);
    await file.write(`${process.pid}\n`);
    return { descriptor: file.fd, release: () => file.close() };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function takeLock(descriptor: number, waitS: number): Promise<boolean> {
  const flock = spawn("flock", ["--exclusive", "--timeout", String(waitS), "3"], {
    stdio: ["ignore", "ignore", "ignore", descriptor],
  });
  const [code]: (number | null)[] = await once(flock, "exit").catch((error: unknown) => {
    const detail = "The program flock could not be started. Install util-linux. Nothing was changed.";
    throw new ProblemError({ code: "tool_missing", detail }, error);
  });
  return code === 0;
}

async function waitForLock(file: FileHandle, path: string, waitS: number, onWait: OnWait): Promise<void> {
  const holder = await readHolder(file);
  if (waitS > 0) {
    onWait(holder);
    if (await takeLock(file.fd, waitS)) return;
  }
  throw new ProblemError({
    code: "rollout_locked",
    detail: `Another roll-out of this project (process ${holder}) did not end within ${waitS} s. It holds ${path}. Nothing was changed.`,
  });
}

async function readHolder(file: FileHandle): Promise<string> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(32), 0, 32, 0);
  return buffer.toString("utf8", 0, bytesRead).trim() || "unknown";
}
