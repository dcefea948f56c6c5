import { describeMachine, wasBusy } from "../machine.ts";
import { renderTable } from "../report.ts";
import { median } from "../statistics.ts";

/** One push of a project, by one of those that deploy it. Times are from the delivery. */
export interface PushMeasurement {
  readonly peer: string;
  readonly services: number;
  readonly kind: "first push" | "good" | "crashes";
  readonly liveMs: number | null;
  readonly doneMs: number | null;
  readonly requests: number;
  readonly failed: number;
  readonly longestMs: number;
}

/** What all pushes of one kind by one peer were like. */
export interface Summary extends PushMeasurement {
  readonly pushes: number;
}

/** One for each peer, number of services and kind: medians of the times, sums of the requests. */
export function summarize(measurements: readonly PushMeasurement[]): readonly Summary[] {
  const groups = Map.groupBy(measurements, ({ peer, services, kind }) => `${services} ${kind} ${peer}`);
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const middle = (key: "liveMs" | "doneMs") =>
      first[key] === null ? null : median(group.map((one) => one[key] ?? 0));
    const sum = (key: "requests" | "failed") => group.reduce((total, one) => total + one[key], 0);
    return {
      ...first,
      pushes: group.length,
      liveMs: middle("liveMs"),
      doneMs: middle("doneMs"),
      requests: sum("requests"),
      failed: sum("failed"),
      longestMs: Math.max(...group.map(({ longestMs }) => longestMs)),
    };
  });
}

/** The section on the comparison of docs/performance.md, without its marks. */
export function renderAgainst(measurements: readonly PushMeasurement[]): string {
  const machine = new Map(describeMachine());
  const busy = "**Other programs were busy on this machine: all times are inflated.**";
  return [
    "## Against what people use instead",
    `${machine.get("Date")}, ${machine.get("Processor")}; adnanh/webhook ${machine.get("adnanh/webhook")}. ${text}`,
    ...(wasBusy ? [busy] : []),
    "![Time from push to live, longest wait and failed requests, for Hotpush and what people use instead](pictures/against.svg)",
    renderTable({
      columns: [
        "Services",
        "Version",
        "Way",
        "Pushes",
        "Requests",
        "Failed",
        "Longest wait",
        "Push to live",
        "Push to done",
      ],
      rows: summarize(measurements).map(rowOf),
    }),
  ].join("\n\n");
}

const text = `The same small project, or one with six such services, is deployed by each, on the same engine and in turns, under the
load of 21 clients for each service. A version is pushed to a real remote, and its delivery sent to each as a git host
does. Hotpush runs \`examples/deploy.sh\`, with the guard and the count of requests that \`init\` sets up. Live means
that all services answer with the new version through Caddy, asked every 20 ms; done, that the script has ended.
Medians; the longest wait is that of any request to which the app answers at once. The first push goes over
what \`docker compose up\` has started, and nobody but the poll asks meanwhile. The version that crashes ends at its
start: requests count for 30 s after its push. docker-rollout is version 0.13, with a time-out of 20 s. To repeat it alone:
\`node bench/rollout/against.ts --docker-rollout <its script>\`.`;

function rowOf(one: Summary): readonly string[] {
  return [
    String(one.services),
    one.kind,
    one.peer,
    String(one.pushes),
    one.requests.toLocaleString("en"),
    one.failed.toLocaleString("en"),
    seconds(one.requests === 0 ? null : one.longestMs),
    seconds(one.liveMs),
    seconds(one.doneMs),
  ];
}

function seconds(ms: number | null): string {
  return ms === null ? "" : `${(ms / 1_000).toFixed(2)} s`;
}
