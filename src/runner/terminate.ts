/**
 * Signals `group`, a process group by the id of its leader; false where nothing of it is left. What is left may belong
 * to another user, by sudo for example, and not be ours to signal.
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
/** How long a killed process may take to be gone; a zombie that nobody reaps never is. */
const goneMs = 2_000;

/**
 * Ends a process group: asks with SIGTERM, waits for `graceMs`, forces what is left with SIGKILL. All of the group is
 * meant, the children of the script too, even where the script itself has ended.
 *
 * @returns whether force was needed; resolves when nothing of the group is left
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
