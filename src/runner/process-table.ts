import { readdirSync, readFileSync } from "node:fs";

export interface ProcessEntry {
  readonly pid: number;
  readonly command: string;
}

/** The processes that a run has left behind: those whose environment says they were started for it. */
export function findProcessesOf(deploymentId: number, repoPath: string): readonly ProcessEntry[] {
  const marks = runMarks(deploymentId, repoPath);
  return processIds()
    .filter((pid) => pid !== process.pid && hasEnvironment(pid, marks))
    .map((pid) => ({ pid, command: commandOf(pid) }));
}

/** What every process has in its environment that was started for a deployment, and kept its environment. */
export function runMarks(deploymentId: number, repoPath: string): readonly string[] {
  return [`DEPLOY_ID=${deploymentId}`, `REPO_PATH=${repoPath}`];
}

/**
 * True while a process with this id lives that was started with all of `marks` in its environment. One that is dead and
 * only waits to be noticed by its parent has none.
 */
export function hasEnvironment(pid: number, marks: readonly string[]): boolean {
  const entries = read(`/proc/${pid}/environ`, "utf8").split("\0");
  return marks.every((mark) => entries.includes(mark));
}

/** A process as the kernel tells of it, to every user. */
export interface ProcessStatus extends ProcessEntry {
  readonly parent: number;
  /** The id of its process group. */
  readonly group: number;
  /** The letter of proc(5), such as S for sleeping. */
  readonly state: string;
  readonly ageMs: number;
}

/** All processes that this one can see. */
export function readProcesses(): readonly ProcessStatus[] {
  return processIds().flatMap((pid) => {
    const stat = read(`/proc/${pid}/stat`, "latin1");
    if (stat === "") return [];
    const [state = "", parent, group] = fieldsAfterName(stat);
    const name = stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")"));
    const command = commandOf(pid) || `[${name}]`;
    return [{ pid, command, parent: Number(parent), group: Number(group), state, ageMs: ageMs(pid) }];
  });
}

/** In units of which the kernel gives start times to user space, whatever it counts in itself. */
const tickMs = 10;

/** How long a process has been running, by the clock that nobody sets; 0 where it is gone. */
export function ageMs(pid: number): number {
  const startTicks = Number(fieldsAfterName(read(`/proc/${pid}/stat`, "latin1"))[19]);
  const uptimeMs = Number(read("/proc/uptime", "latin1").split(" ")[0]) * 1_000;
  return Math.max(0, uptimeMs - startTicks * tickMs) || 0;
}

/** The fields of a line of `stat` from the third on: the name before may have blanks and brackets in it. */
function fieldsAfterName(stat: string): readonly string[] {
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

function processIds(): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** The whole command line: what is to be shown of it is cut when it is redacted. */
function commandOf(pid: number): string {
  return read(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
}

/** Other users' processes cannot be read, and any process may be gone by now. */
function read(path: string, encoding: "utf8" | "latin1"): string {
  try {
    return readFileSync(path, encoding);
  } catch {
    return "";
  }
}
