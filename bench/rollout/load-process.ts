/**
 * The load of the bench in a process of its own and, started with `detached`, in a session of its own. If the kernel
 * divides its cores by session (sched(7), autogroup), the roll-out's work does not slow the clients more than other work.
 */
import { startLoad } from "../../test/lab/load.ts";

/** The answer to the request to stop; times are milliseconds since the epoch. */
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

// The load ends with the bench.
process.once("disconnect", () => process.exit());
process.once("message", async () => {
  const { answers } = await load.stop();
  const report: LoadReport = {
    answers: answers.map((answer) => ({ ...answer, atMs: performance.timeOrigin + answer.atMs })),
  };
  process.send?.(report, () => process.disconnect());
});
