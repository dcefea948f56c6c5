import { readdirSync, readFileSync } from "node:fs";

export interface ProcessEntry {
  readonly pid: number;
  readonly command: string;
}

/** The processes that a run has left behind: those whose environment says they were started for it. */
export function findProcessesOf(deploymentId: number, repoPath: string): readonly ProcessEntry[] {
  const marks = [`DEPLOY_ID=${deploymentId}`, `REPO_PATH=${repoPath}`];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid && hasEnvironment(pid, marks))
    .map((pid) => ({ pid, command: commandOf(pid) }));
}

/**
 * True while a process with this id lives that was started with all of `marks` in its environment. One that is dead and
 * only waits to be noticed by its parent has none.
 */
export function hasEnvironment(pid: number, marks: readonly string[]): boolean {
  const entries = read(`/proc/${pid}/environ`).split("\0");
  return marks.every((mark) => entries.includes(mark));
}

/** In units of which the kernel gives start times to user space, whatever it counts in itself. */
const tickMs = 10;

/** How long a process has been running, by the clock that nobody sets; 0 where it is gone. */
export function ageMs(pid: number): number {
  const stat = read(`/proc/${pid}/stat`);
  // After the name, which may have blanks and brackets in it, the start is the 20th field.
  const startTicks = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]);
  const uptimeMs = Number(read("/proc/uptime").split(" ")[0]) * 1_000;
  return Math.max(0, uptimeMs - startTicks * tickMs) || 0;
}

function commandOf(pid: number): string {
  const command = read(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim();
  return command.length > 100 ? `${command.slice(0, 99)}…` : command;
}

/** Other users' processes cannot be read, and any process may be gone by now. */
function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
