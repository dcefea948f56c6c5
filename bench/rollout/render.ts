import { describeMachine, wasBusy } from "../machine.ts";
import { count, renderTable, renderTargets, type Target } from "../report.ts";
import { median, percentile } from "../statistics.ts";
import type { Measurement } from "./measure.ts";
import { hotpush, upDetached } from "./ways.ts";

/** How long Hotpush's own steps may take. */
const ownStepsMs = 2_000;

/** The section on roll-outs of docs/performance.md, without its marks. */
export function renderRollouts(measurements: readonly Measurement[]): string {
  const [, date = ""] = describeMachine().find(([what]) => what === "Date") ?? [];
  const columns = [
    "App",
    "Way",
    "Roll-outs",
    "Requests",
    "Failed",
    "p99 during, quiet",
    "Longest",
    "Median length",
  ];
  const targets = measurements.filter(({ way }) => way === hotpush.name);
  const aims = [
    { title: "", text: "", tables: [], targets: targets.flatMap((one) => aimsOf(one, measurements)) },
  ];
  const parts = [
    "## Roll-out",
    `${date}. ${text}`,
    ...(wasBusy
      ? [
          "**Other programs were busy on this machine: latencies and lengths are inflated, failures are not.**",
        ]
      : []),
    renderTable({ columns, rows: measurements.map(rowOf) }),
    renderTargets(aims),
    repeating,
  ];
  return parts.join("\n\n");
}

const text = `An app behind Caddy gets one new version after another while 21 clients send requests without any retry: on kept
and new connections, GET and POST of 1 KiB, and requests that take two seconds. Anything but a complete 2xx answer is a
failure. On SIGTERM, the app finishes its requests (graceful), dies at once, or ignores it (it is killed after 5 s); or it
needs 4 s to be healthy. The ways run one after the other on the same engine. On the engine of the tests, the kernel
forwards a request to Caddy's port, as it does with one from outside.`;

const repeating = `To repeat it: \`npm run bench:rollout\` on Debian as root, or on a machine with Docker, with nothing else running.
test/e2e asserts the rest: versions that are unhealthy, crash or answer badly, 30 times \`kill -9\` and ten roll-outs on a Swarm with
\`HOTPUSH_E2E_KILLS=30 HOTPUSH_E2E_SWARM_ROLLOUTS=10 npm run e2e\`.`;

function rowOf(measurement: Measurement): readonly string[] {
  const { way, app, rollouts, report } = measurement;
  const { during, quiet } = latencies(measurement);
  return [
    app,
    way,
    count(rollouts.length),
    count(report.answers.length),
    count(failed(measurement)),
    `${whole(percentile(during, 99))} ms, ${whole(percentile(quiet, 99))} ms`,
    `${whole(percentile(during, 100))} ms`,
    seconds(median(rollouts.map(({ durationMs }) => durationMs))),
  ];
}

/** The aims of Hotpush's roll-outs, relative to `docker compose up -d` on the same kind of app. */
function aimsOf(mine: Measurement, all: readonly Measurement[]): readonly Target[] {
  const { app, rollouts } = mine;
  const { during, quiet } = latencies(mine);
  const p99 = percentile(during, 99);
  const quietP99 = percentile(quiet, 99);
  const bare = all.find((one) => one.app === app && one.way === upDetached.name);
  const upMs = median(bare?.rollouts.map(({ durationMs }) => durationMs) ?? []);
  const lengths = rollouts.map(({ durationMs }) => durationMs);
  const limits = rollouts.map(
    ({ healthyAfterMs = 0, drainedMs = 0 }) => upMs + healthyAfterMs + drainedMs + ownStepsMs,
  );
  const isInTime = median(lengths) <= median(limits);
  return [
    target(app, "failed requests", "0", String(failed(mine)), failed(mine) === 0),
    target(
      app,
      "p99 during roll-outs, against quiet",
      "at most 1.5 ×",
      `${(p99 / quietP99).toFixed(2)} ×`,
      p99 <= 1.5 * quietP99,
    ),
    target(
      app,
      "length, against `up -d`, healthy, drain and 2 s",
      `at most ${seconds(median(limits))}`,
      seconds(median(lengths)),
      isInTime,
    ),
  ];
}

function target(app: string, what: string, aim: string, measured: string, isMet: boolean): Target {
  return { what: `${app}: ${what}`, aim, measured, isMet };
}

function failed({ report }: Measurement): number {
  return report.answers.filter(({ failure }) => failure !== null).length;
}

/** The latencies of the requests that the app answers at once, in milliseconds. */
function latencies({ report, rollouts }: Measurement): Record<"during" | "quiet", readonly number[]> {
  const isDuring = ({ atMs }: { readonly atMs: number }) =>
    rollouts.some(({ startMs, endMs }) => atMs >= startMs && atMs <= endMs);
  const fast = report.answers.filter(({ isFast, failure }) => isFast && failure === null);
  const msOf = (answers: typeof fast) => answers.map(({ latencyMs }) => latencyMs);
  return { during: msOf(fast.filter(isDuring)), quiet: msOf(fast.filter((answer) => !isDuring(answer))) };
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

function whole(ms: number): string {
  return ms.toFixed(0);
}
