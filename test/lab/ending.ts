import { readDeployments } from "../harness/records.ts";
import { until } from "../harness/until.ts";

/** Waits until deployment `id` has ended, and gives its state. */
export type EndingOf = (id: number, withinMs?: number) => Promise<string>;

export function endingIn(statePath: string): EndingOf {
  return (id, withinMs = 120_000) =>
    until(
      `the end of deployment ${id}`,
      () => {
        const state = readDeployments(statePath).find((row) => row.id === id)?.state ?? "unknown";
        return ["unknown", "queued", "running", "interrupted"].includes(state) ? null : state;
      },
      withinMs,
    );
}
