import type { Store } from "#platform/sqlite";

/** A queue that is held: pushes are recorded, and wait. */
export interface Pause {
  readonly pausedAtMs: number;
  readonly reason: string | null;
  /** Who requested it, as the command reported, without proof. */
  readonly pausedBy: string | null;
}

/** Holds the queue of a project. A running deployment goes on. Call it in a transaction. */
export function pauseQueue(store: Store, { reason, pausedBy }: Omit<Pause, "pausedAtMs">): void {
  const sql = "INSERT OR REPLACE INTO pauses VALUES ($project, ?, ?, ?)";
  store.run(sql, Date.now(), reason, pausedBy);
}

/** Lets the queue of a project go on. Call it in a transaction. @returns false if it was not paused */
export function resumeQueue(store: Store): boolean {
  return store.run("DELETE FROM pauses WHERE project = $project").changes === 1;
}

/** @returns null if the queue is not paused */
export function findPause(store: Store): Pause | null {
  const sql =
    "SELECT paused_at_ms AS pausedAtMs, reason, paused_by AS pausedBy FROM pauses WHERE project = $project";
  return (store.get(sql) as Pause | undefined) ?? null;
}
