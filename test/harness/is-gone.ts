/** Whether there is no process of this id any more; one that has ended and was not waited for is still there. */
export function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}
