import { describeMachine, wasBusy } from "../machine.ts";
import { renderTable } from "../report.ts";
import { median } from "../statistics.ts";
import type { TimedEvent } from "./timed-ways.ts";

/** One new version of a project, brought into service. Times are from the start of the command. */
export interface BudgetMeasurement {
  readonly way: "compose" | "roll-out" | "the first roll-out";
  readonly services: number;
  readonly liveMs: number;
  /** The end of the roll-out, or of compose. */
  readonly doneMs: number;
  /** The end of `hotpush prune`; null for compose, which leaves old images where they are. */
  readonly prunedMs: number | null;
  readonly events: readonly TimedEvent[];
}

/** The section on the time to live of docs/performance.md, without its marks. */
export function renderBudget(measurements: readonly BudgetMeasurement[]): string {
  const [, date = ""] = describeMachine().find(([what]) => what === "Date") ?? [];
  const busy = "**Other programs were busy on this machine: all times are inflated.**";
  return [
    "## From the command to live",
    `${date}. ${text}`,
    ...(wasBusy ? [busy] : []),
    renderTable({
      columns: ["Services", "Way", "Live", "Done", "Pruned", "Against compose: live, done, pruned"],
      rows: rowsOf(measurements),
    }),
    "A roll-out of one service, step by step. Each step is counted from its start to its end; the times between are Hotpush's own:",
    renderTable({ columns: ["Step", "Takes", "Ends after"], rows: stepRows(measurements) }),
  ].join("\n\n");
}

const text = `A small app, or six of them, behind Caddy gets a new version by \`docker compose up -d --build --wait\` and by
\`hotpush rollout --prune\`, in turns on the same engine; each has its own project. Live means that all services answer
with the new version through Caddy, asked every 20 ms. Compose does not remove old images; here the comparison of the column
“Pruned” is with its end. The label \`hotpush.guard\` is 0. Medians.
To repeat it alone: \`node bench/rollout/budget.ts\`.`;

function rowsOf(measurements: readonly BudgetMeasurement[]): readonly (readonly string[])[] {
  const groups = Map.groupBy(measurements, ({ services, way }) => `${services} ${way}`);
  return [...groups.values()].flatMap(([one]) => (one ? [rowOf(one, measurements)] : []));
}

function rowOf({ services, way }: BudgetMeasurement, all: readonly BudgetMeasurement[]): readonly string[] {
  const mine = all.filter((one) => one.services === services && one.way === way);
  const compose = all.filter((one) => one.services === services && one.way === "compose");
  const live = median(mine.map(({ liveMs }) => liveMs));
  const done = median(mine.map(({ doneMs }) => doneMs));
  if (way === "compose") return [String(services), way, seconds(live), seconds(done), "", ""];
  const pruned = median(mine.map(({ doneMs, prunedMs }) => prunedMs ?? doneMs));
  const composeLive = median(compose.map(({ liveMs }) => liveMs));
  const composeDone = median(compose.map(({ doneMs }) => doneMs));
  const against = [live / composeLive, done / composeDone, pruned / composeDone];
  const times = against.map((ratio) => `${ratio.toFixed(2)} ×`).join(", ");
  return [String(services), way, seconds(live), seconds(done), seconds(pruned), times];
}

function stepRows(measurements: readonly BudgetMeasurement[]): readonly (readonly string[])[] {
  const rollouts = measurements.filter(({ way, services }) => way === "roll-out" && services === 1);
  const steps = new Set(rollouts.flatMap(({ events }) => events.map(({ step }) => step)));
  return [...steps].map((step) => {
    const events = rollouts.flatMap((one) => one.events.filter((event) => event.step === step));
    const takes = median(events.map(({ durationMs }) => durationMs));
    return [step, takes === 0 ? "" : seconds(takes), seconds(median(events.map(({ atMs }) => atMs)))];
  });
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(2)} s`;
}
