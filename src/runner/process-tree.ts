import { formatDuration } from "../config/duration.ts";
import { printable } from "../platform/terminal/printable.ts";
import type { Redactor } from "../redaction/redactor.ts";
import { type ProcessStatus, readProcesses } from "./process-table.ts";

export interface TreeOptions {
  /** Whether a process, by its id, was started for this run. */
  readonly isMarked: (pid: number) => boolean;
  /** The process group of the run, whose leader, keeper.sh, is ours and not shown; null where it is not known. */
  readonly group: number | null;
  readonly redactor: Redactor;
}

const mostLines = 30;
const longestCommand = 160;

/**
 * The processes of a run as lines of text, each below the one that started it: id, state, how long it has been running,
 * command line. A child that another user's rights or an emptied environment hide is found by its parent.
 */
export function describeProcesses({ isMarked, group, redactor }: TreeOptions): readonly string[] {
  const all = readProcesses();
  const members = new Map<number, ProcessStatus>();
  const add = (process: ProcessStatus): void => {
    if (process.pid === group || members.has(process.pid)) return;
    members.set(process.pid, process);
    for (const child of all.filter(({ parent }) => parent === process.pid)) add(child);
  };
  for (const process of all) if (process.group === group || isMarked(process.pid)) add(process);
  const inOrder = [...members.values()].sort((one, other) => one.pid - other.pid);
  const below = (parent: ProcessStatus, depth: number): readonly string[] => [
    `${"  ".repeat(depth)}${described(parent, redactor)}`,
    ...inOrder.filter((process) => process.parent === parent.pid).flatMap((child) => below(child, depth + 1)),
  ];
  const lines = inOrder.filter(({ parent }) => !members.has(parent)).flatMap((root) => below(root, 0));
  const left = lines.length - mostLines;
  return left > 0 ? [...lines.slice(0, mostLines), `and ${left} more`] : lines;
}

function described({ pid, state, ageMs, command }: ProcessStatus, redactor: Redactor): string {
  // Redacted before it is cut: half a secret would not be found.
  return `${pid} ${states[state] ?? state}, ${formatDuration(ageMs)}: ${printable(redactor.text(command), longestCommand)}`;
}

/** As proc(5) has them. */
const states: Readonly<Record<string, string>> = {
  R: "running",
  S: "sleeping",
  D: "waiting for a disk",
  T: "stopped",
  t: "traced",
  Z: "ended, not noticed by its parent",
  I: "idle",
};
