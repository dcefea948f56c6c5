/**
 * Rolls out a version after the other under load, in several ways and for apps that end in several ways, and prints a
 * Markdown table. `node bench/rollout/main.ts [roll-outs of hotpush] [roll-outs of the others]`
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openLab } from "../../test/lab/lab.ts";
import { type Behaviour, makeProject, type TestProject } from "../../test/lab/project.ts";
import type { LoadReport } from "./load-process.ts";
import { type Way, ways } from "./ways.ts";

const rounds = Number(process.argv[2] ?? 20);
const roundsOfOthers = Number(process.argv[3] ?? 5);
const quietMs = 2_000;
const behaviours: readonly Behaviour[] = ["graceful", "dies-on-sigterm", "ignores-sigterm", "slow-start"];

interface Window {
  readonly startMs: number;
  readonly endMs: number;
}

const lab = await openLab();
if (lab.kind === "unavailable") throw new Error(lab.reason);
const columns = [
  "Way",
  "App",
  "Roll-outs",
  "Requests",
  "Failed",
  "p99 [quiet] ms",
  "Longest ms",
  "s per roll-out",
];
console.log(`| ${columns.join(" | ")} |\n|${columns.map(() => "---|").join("")}`);
for (const behaviour of behaviours) {
  for (const way of ways) console.log(await measure(way, behaviour, lab.env));
}

async function measure(way: Way, behaviour: Behaviour, env: NodeJS.ProcessEnv): Promise<string> {
  const project = await makeProject(env);
  try {
    await way.prepare(project);
    await project.write("v0", behaviour);
    await project.docker("compose", "up", "--detach", "--build", "--wait");
    if (way === ways[0]) await way.deploy(project);
    const count = way === ways[0] ? rounds : roundsOfOthers;
    const { report, windows } = await underLoad(project, () => deployAll(way, behaviour, project, count));
    return row(way, behaviour, report, windows);
  } finally {
    await project.remove();
  }
}

async function underLoad(project: TestProject, work: () => Promise<readonly Window[]>) {
  const load = fork(join(import.meta.dirname, "load-process.ts"), [project.origin]);
  try {
    await sleep(quietMs);
    const windows = await work();
    load.send("stop");
    const [report]: LoadReport[] = await once(load, "message");
    return { report: report ?? { answers: [] }, windows };
  } finally {
    load.kill();
  }
}

async function deployAll(way: Way, behaviour: Behaviour, project: TestProject, count: number) {
  const windows: Window[] = [];
  for (let round = 1; round <= count; round += 1) {
    await project.write(`v${round}`, behaviour);
    const startMs = Date.now();
    await way.deploy(project);
    windows.push({ startMs, endMs: Date.now() });
    await sleep(quietMs);
  }
  return windows;
}

function row(way: Way, behaviour: Behaviour, { answers }: LoadReport, windows: readonly Window[]): string {
  const isDuring = ({ atMs }: { readonly atMs: number }) =>
    windows.some(({ startMs, endMs }) => atMs >= startMs && atMs <= endMs);
  const fast = answers.filter(({ isFast, failure }) => isFast && failure === null);
  const during = fast.filter(isDuring).map(({ latencyMs }) => latencyMs);
  const quiet = fast.filter((answer) => !isDuring(answer)).map(({ latencyMs }) => latencyMs);
  const durations = windows.map(({ startMs, endMs }) => (endMs - startMs) / 1_000);
  const cells = [
    way.name,
    behaviour,
    windows.length,
    answers.length,
    answers.filter(({ failure }) => failure !== null).length,
    `${quantile(during, 0.99).toFixed(0)} [${quantile(quiet, 0.99).toFixed(0)}]`,
    quantile(during, 1).toFixed(0),
    quantile(durations, 0.5).toFixed(1),
  ];
  return `| ${cells.join(" | ")} |`;
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}
