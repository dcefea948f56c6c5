import { readdirSync, readFileSync } from "node:fs";

export interface ProcessEntry {
  readonly pid: number;
  /** The id of its process group. */
  readonly group: number;
  readonly command: string;
}

/** The processes of a run, found by the marks in their environment, unless one has emptied it. A zombie has none. */
export function findProcessesOf(deploymentId: number, repoPath: string): readonly ProcessEntry[] {
  const marks = [`DEPLOY_ID=${deploymentId}`, `REPO_PATH=${repoPath}`];
  return processIds()
    .filter((pid) => pid !== process.pid && hasEnvironment(pid, marks))
    .map((pid) => ({ pid, group: Number(statOf(pid)[2]), command: commandOf(pid) }));
}

/** The variables of these names that the processes of a run have in their environment. */
export function variablesOf(
  deploymentId: number,
  repoPath: string,
  names: readonly string[],
): Readonly<Record<string, string>> {
  const entries = findProcessesOf(deploymentId, repoPath).flatMap(({ pid }) =>
    read(`/proc/${pid}/environ`, "utf8")
      .split("\0")
      .map((entry) => [entry.slice(0, entry.indexOf("=")), entry.slice(entry.indexOf("=") + 1)] as const),
  );
  return Object.fromEntries(entries.filter(([name]) => names.includes(name)));
}

function hasEnvironment(pid: number, marks: readonly string[]): boolean {
  const entries = read(`/proc/${pid}/environ`, "utf8").split("\0");
  return marks.every((mark) => entries.includes(mark));
}

/** The unit of start times in /proc, whatever the kernel counts in. */
const tickMs = 10;

/** How long a process has been running, by the monotonic clock; 0 if it is gone. */
export function ageMs(pid: number): number {
  const startTicks = Number(statOf(pid)[19]);
  const uptimeMs = Number(read("/proc/uptime", "latin1").split(" ")[0]) * 1_000;
  return Math.max(0, uptimeMs - startTicks * tickMs) || 0;
}

/** The fields of a line of `stat` from the third on: the name before them may contain blanks and brackets. */
function statOf(pid: number): readonly string[] {
  const stat = read(`/proc/${pid}/stat`, "latin1");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

function processIds(): readonly number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter(Number.isSafeInteger)
    .sort((one, other) => one - other);
}

/** The whole command line: it is redacted before it is shortened. */
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

/**
 * Signals `group`, a process group by the id of its leader; false if no process of it is left. The rest of a group may
 * belong to another user, for example by sudo, so that this process may not signal it.
 */
export function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-group, signal);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ESRCH") return false;
    if (code === "EPERM") return true;
    throw error;
  }
}

const lookIntervalMs = 50;
/** The longest wait for a killed process to be gone: a zombie that nobody reaps never is. */
const goneMs = 2_000;

/**
 * Ends a process group: sends SIGTERM, waits up to `graceMs`, then sends SIGKILL. It ends the whole group, even if the
 * script itself has ended and only its children are left.
 *
 * @returns whether SIGKILL was needed; resolves when no process of the group is left
 */
export function terminateGroup(group: number, graceMs: number): Promise<{ readonly wasForced: boolean }> {
  const deadlineMs = performance.now() + graceMs;
  let wasForced = false;
  signalGroup(group, "SIGTERM");
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      const isLeft = signalGroup(group, 0);
      const overdueMs = performance.now() - deadlineMs;
      if (!isLeft || overdueMs >= goneMs) {
        clearInterval(timer);
        resolve({ wasForced });
      } else if (!wasForced && overdueMs >= 0) {
        wasForced = true;
        signalGroup(group, "SIGKILL");
      }
    }, lookIntervalMs);
  });
}
