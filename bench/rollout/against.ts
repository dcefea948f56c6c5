/**
 * Pushes versions of a small project that Hotpush deploys, and of the same project with what people use instead, in turns
 * under load. Counts failed requests, and measures from the delivery of a push. Writes its part of docs/performance.md, and
 * the chart.
 *
 *   node bench/rollout/against.ts                       5 rounds, with one and with six services, and a version that crashes
 *   node bench/rollout/against.ts --rounds 1 --services 1        prints, and writes nothing
 *   node bench/rollout/against.ts --docker-rollout <its script>  beside the others
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { until } from "../../test/harness/until.ts";
import { closeLab, openLab } from "../../test/lab/lab.ts";
import { type Load, startLoad } from "../../test/lab/load.ts";
import { withScope } from "../scope.ts";
import { isInstalled, missingText, webhook } from "../tools.ts";
import { chartOf } from "./against-chart.ts";
import { composeByWebhook, dockerRollout, hotpush, type Peer, type PushedProject } from "./peers.ts";
import { type PushMeasurement, renderAgainst } from "./render-against.ts";
import { againstMarks, withSection } from "./section.ts";

const docs = join(import.meta.dirname, "../../docs");
const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    services: { type: "string", default: "1,6" },
    "docker-rollout": { type: "string" },
  },
});
const rounds = Number(values.rounds);
const script = values["docker-rollout"];
/** Between two requests of a client, of which there are 21 for each service. */
const pauseMs = 300;
const pollMs = 20;
const liveWithinMs = 120_000;
/** So long the requests count after a version that crashes was pushed. Nobody pushes a better one meanwhile. */
const crashMs = 30_000;
const quietMs = 1_500;

if (!isInstalled(webhook)) throw new Error(missingText(webhook));
const peers: readonly Peer[] = [
  hotpush,
  composeByWebhook,
  ...(script === undefined ? [] : [dockerRollout(script)]),
];
const lab = await openLab();
if (lab.kind === "unavailable") throw new Error(lab.reason);
try {
  const measurements: PushMeasurement[] = [];
  for (const services of values.services.split(",").map(Number))
    measurements.push(...(await measureWith(services, lab.env)));
  const text = renderAgainst(measurements);
  console.log(text);
  if (rounds >= 5) {
    const page = join(docs, "performance.md");
    writeFileSync(page, withSection(readFileSync(page, "utf8"), againstMarks, text));
    writeFileSync(join(docs, "pictures/against.svg"), chartOf(measurements));
    console.log("\nWritten to docs/performance.md and docs/pictures/against.svg");
  }
} finally {
  if (lab.wasStarted) await closeLab();
}

/** All projects run at the same time, but only one of them is deployed and asked. */
async function measureWith(services: number, env: NodeJS.ProcessEnv): Promise<readonly PushMeasurement[]> {
  return await withScope(async (scope) => {
    const projects: (readonly [string, PushedProject])[] = [];
    for (const { name, start } of peers) projects.push([name, await start(scope, env, services)]);
    const all: PushMeasurement[] = [];
    for (const [name, project] of projects) all.push(await measure(name, project, "first", "first push"));
    for (let round = 1; round <= rounds; round += 1)
      for (const [name, project] of projects) all.push(await measure(name, project, `v${round}`));
    if (services === 1) for (const [name, project] of projects) all.push(await measureCrash(name, project));
    return all;
  });
}

async function measure(
  peer: string,
  project: PushedProject,
  version: string,
  kind: "first push" | "good" = "good",
): Promise<PushMeasurement> {
  await project.commit(version, "graceful");
  const loads = kind === "first push" ? [] : await startLoads(project);
  const startMs = Date.now();
  await project.send();
  const since = () => Date.now() - startMs;
  const [liveMs, doneMs] = await Promise.all([
    untilLive(project, version).then(since),
    project.untilDone().then(since),
  ]);
  const timeline = (await project.timeline?.()) ?? [];
  for (const [atMs, what] of timeline.toSorted(([one], [other]) => one - other))
    console.log(`  ${String(atMs - startMs).padStart(6)} ms  ${what}`);
  await sleep(quietMs);
  return report(peer, project, { kind, liveMs, doneMs }, loads);
}

async function measureCrash(peer: string, project: PushedProject): Promise<PushMeasurement> {
  await project.commit("crash", "crashes");
  const loads = await startLoads(project);
  await project.send();
  await sleep(crashMs);
  return report(peer, project, { kind: "crashes", liveMs: null, doneMs: null }, loads);
}

async function startLoads({ services, originOf }: PushedProject): Promise<readonly Load[]> {
  const loads = services.map((service) => startLoad(originOf(service), pauseMs));
  await until("answers", () => loads.every(({ answers }) => answers.length > 20));
  return loads;
}

async function report(
  peer: string,
  { services }: PushedProject,
  measured: Pick<PushMeasurement, "kind" | "liveMs" | "doneMs">,
  loads: readonly Load[],
): Promise<PushMeasurement> {
  const results = await Promise.all(loads.map((load) => load.stop()));
  const answers = results.flatMap((result) => result.answers);
  const measurement = {
    peer,
    services: services.length,
    ...measured,
    requests: answers.length,
    failed: results.reduce((sum, { failures }) => sum + failures.length, 0),
    longestMs: Math.max(0, ...answers.filter(({ isFast }) => isFast).map(({ latencyMs }) => latencyMs)),
  };
  console.log(JSON.stringify(measurement));
  return measurement;
}

async function untilLive(project: PushedProject, version: string): Promise<void> {
  const startMs = Date.now();
  while (!(await project.isLive(version))) {
    if (Date.now() - startMs > liveWithinMs) throw new Error(`${version} is not live`);
    await sleep(pollMs);
  }
}
