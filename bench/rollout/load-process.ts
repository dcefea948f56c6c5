/**
 * The load of the bench in a process of its own and, started with `detached`, in a session of its own. Where the kernel
 * shares its cores out by session, the roll-out's work slows the clients no more than anything else: sched(7), autogroup.
 */
import { startLoad } from "../../test/lab/load.ts";

/** Answered when the load is told to stop; times are milliseconds since the epoch. */
export interface LoadReport {
  readonly answers: readonly {
    readonly atMs: number;
    readonly latencyMs: number;
    readonly isFast: boolean;
    readonly failure: string | null;
  }[];
}

const origin = process.argv[2] ?? "";
const load = startLoad(origin);

// When the bench is gone, so is the load.
process.once("disconnect", () => process.exit());
process.once("message", async () => {
  const { answers } = await load.stop();
  const report: LoadReport = {
    answers: answers.map((answer) => ({ ...answer, atMs: performance.timeOrigin + answer.atMs })),
  };
  process.send?.(report, () => process.disconnect());
});
