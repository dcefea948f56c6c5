/**
 * Brings new versions of small projects into service in turns, by compose and by a roll-out, and measures how long it takes
 * until all services answer with the new version, and until the end. Writes its part of docs/performance.md.
 *
 *   node bench/rollout/budget.ts                                   5 rounds, with one and with six services
 *   node bench/rollout/budget.ts --rounds 1 --services 1           prints, and writes nothing
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { closeLab, openLab } from "../../test/lab/lab.ts";
import { type BudgetMeasurement, renderBudget } from "./render-budget.ts";
import { budgetMarks, withSection } from "./section.ts";
import { makeServicesProject, type ServicesProject } from "./services.ts";
import { composeUp, rollOutAndPrune, type TimedEvent } from "./timed-ways.ts";

const page = join(import.meta.dirname, "../../docs/performance.md");
const { values } = parseArgs({
  options: { rounds: { type: "string", default: "5" }, services: { type: "string", default: "1,6" } },
});
const rounds = Number(values.rounds);
/** Between two versions, so that what the one before left does not count. */
const quietMs = 1_500;
const pollMs = 20;
const liveWithinMs = 120_000;

type Deploy = (project: ServicesProject) => Promise<readonly TimedEvent[]>;

const lab = await openLab();
if (lab.kind === "unavailable") throw new Error(lab.reason);
try {
  const measurements: BudgetMeasurement[] = [];
  for (const count of values.services.split(",").map(Number))
    measurements.push(...(await measureWith(count, lab.env)));
  const text = renderBudget(measurements);
  console.log(text);
  if (rounds >= 5) {
    writeFileSync(page, withSection(readFileSync(page, "utf8"), budgetMarks, text));
    console.log("\nWritten to docs/performance.md");
  }
} finally {
  if (lab.wasStarted) await closeLab();
}

async function measureWith(count: number, env: NodeJS.ProcessEnv): Promise<readonly BudgetMeasurement[]> {
  const byName = await makeServicesProject(env, count, "by name");
  const byFile = await makeServicesProject(env, count, "by live file");
  try {
    for (const project of [byName, byFile]) {
      await project.writeAll("v0");
      await project.docker("compose", "up", "--detach", "--build", "--wait");
    }
    const first = await measure("the first roll-out", byFile, "first", rollOutAndPrune);
    const all = [first];
    for (let round = 1; round <= rounds; round += 1) {
      all.push(await measure("compose", byName, `c${round}`, composeUp));
      all.push(await measure("roll-out", byFile, `r${round}`, rollOutAndPrune));
    }
    return all;
  } finally {
    await byName.remove();
    await byFile.remove();
  }
}

async function measure(
  way: BudgetMeasurement["way"],
  project: ServicesProject,
  version: string,
  deploy: Deploy,
): Promise<BudgetMeasurement> {
  await project.writeAll(version);
  await sleep(quietMs);
  const startMs = Date.now();
  const going = deploy(project);
  const [liveMs, deployed, overMs] = await Promise.all([
    untilLive(project, version, startMs),
    going,
    going.then(() => Date.now() - startMs),
  ]);
  const services = project.services.length;
  const events = deployed.map(({ atMs, ...one }) => ({ ...one, atMs: atMs - startMs }));
  const rolledMs = events.find(({ step }) => step === "rolled out")?.atMs;
  const doneMs = rolledMs ?? overMs;
  console.log(
    `${services} by ${way}: live after ${liveMs} ms, done after ${doneMs} ms, over after ${overMs} ms`,
  );
  return { way, services, liveMs, doneMs, prunedMs: rolledMs === undefined ? null : overMs, events };
}

async function untilLive(project: ServicesProject, version: string, startMs: number): Promise<number> {
  while (!(await project.isLive(version))) {
    if (Date.now() - startMs > liveWithinMs) throw new Error(`${version} is not live`);
    await sleep(pollMs);
  }
  return Date.now() - startMs;
}
