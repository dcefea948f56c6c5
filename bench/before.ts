import { execFileSync } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { memoryOf } from "../test/harness/processes.ts";
import type { Scope } from "../test/harness/temporary.ts";
import { measureFirstPush } from "./first-line.ts";
import { type Pace, perRound } from "./pace.ts";
import { root, startHotpush } from "./peers/hotpush.ts";
import { ignoredRef, pushOfSize } from "./push.ts";
import { count, mb, ms, type Section, type Target, times } from "./report.ts";
import { withScope } from "./scope.ts";
import { median } from "./statistics.ts";
import { loadWith } from "./wrk.ts";

/** A checkout of an earlier version with its own node_modules, to compare this one with. */
export const beforePath = process.env.HOTPUSH_BENCH_BEFORE;

interface Measure {
  readonly name: string;
  readonly once: (scope: Scope, root: string) => Promise<number>;
  readonly show: (value: number) => string;
  readonly isMoreBetter?: boolean;
}

/** The single process with one project, against an earlier version: each figure in turns. */
export async function measureAgainstBefore(pace: Pace): Promise<Section> {
  const rounds = pace({ quick: 1, full: 5 });
  const versions = [beforePath ?? root, root];
  const rows: string[][] = [];
  const targets: Target[] = [];
  for (const { name, once, show, isMoreBetter = false } of measures(pace)) {
    // The first one fills the cache of compiled code.
    for (const version of versions) await withScope((scope) => once(scope, version));
    // In this order, so that neither always comes after the other.
    const measured = await perRound([0, 1, 1, 0], rounds, (index) =>
      withScope((scope) => once(scope, versions[index] ?? root)),
    );
    const before = median(measured.get(0) ?? []);
    const now = median(measured.get(1) ?? []);
    rows.push([name, show(before), show(now), times(now, before)]);
    targets.push({
      what: `${name}, against the version before`,
      aim: isMoreBetter ? "at least 0.95 ×" : "at most 1.05 ×",
      measured: times(now, before),
      isMet: isMoreBetter ? now >= 0.95 * before : now <= 1.05 * before,
    });
  }
  return {
    title: "Against the version before",
    text: `One process with one project, this version against commit ${commitOf(versions[0] ?? root)}; medians of ${2 * rounds} in turns, with every figure measured in a process of its own.`,
    tables: [{ columns: ["", "before", "now", "ratio"], rows }],
    targets,
  };
}

function measures(pace: Pace): readonly Measure[] {
  const settleMs = pace({ quick: 1_000, full: 3_000 });
  const seconds = pace({ quick: 1, full: 2 });
  const warmUpSeconds = pace({ quick: 1, full: 6 });
  const delivery = pushOfSize(8_192, { ref: ignoredRef });
  return [
    { name: "Start", show: ms, once: async (scope, root) => (await startHotpush(scope, { root })).startMs },
    {
      name: "Resident memory, idle",
      show: mb,
      async once(scope, root) {
        const { pid } = await startHotpush(scope, { root });
        await delay(settleMs);
        return memoryOf(pid).residentBytes;
      },
    },
    {
      name: "Pushes a second, to a branch that is not deployed",
      show: count,
      isMoreBetter: true,
      async once(scope, root) {
        const { hookUrl } = await startHotpush(scope, { root });
        // For some seconds, V8 still compiles what runs often, on a core that the load needs too.
        await loadWith(hookUrl, { delivery, connections: 32, seconds: warmUpSeconds });
        return (await loadWith(hookUrl, { delivery, connections: 32, seconds })).perSecond;
      },
    },
    {
      name: "The first push after a start, to the first line of its script",
      show: ms,
      once: (scope, root) => measureFirstPush(scope, root),
    },
  ];
}

function commitOf(path: string): string {
  return execFileSync("git", ["-C", path, "rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim();
}
