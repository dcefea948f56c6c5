/**
 * Rolls out one version after another under load, in several ways and for apps that stop in different ways. Writes the
 * section on roll-outs of docs/performance.md.
 *
 *   node bench/rollout/main.ts                               20 roll-outs of Hotpush and 3 of each other way, for each app
 *   node bench/rollout/main.ts --rollouts 2 --others 1 --apps graceful   prints, and writes nothing
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { closeLab, openLab } from "../../test/lab/lab.ts";
import type { Behaviour } from "../../test/lab/project.ts";
import { type Measurement, measure } from "./measure.ts";
import { renderRollouts } from "./render.ts";
import { withRolloutSection } from "./section.ts";
import { hotpush, others } from "./ways.ts";

const page = join(import.meta.dirname, "../../docs/performance.md");
const allApps: readonly Behaviour[] = ["graceful", "dies-on-sigterm", "ignores-sigterm", "slow-start"];
const { values } = parseArgs({
  options: {
    rollouts: { type: "string", default: "20" },
    others: { type: "string", default: "3" },
    apps: { type: "string", default: allApps.join() },
  },
});
const apps = allApps.filter((app) => values.apps.split(",").includes(app));
const isWhole = Number(values.rollouts) >= 20 && apps.length === allApps.length;

const lab = await openLab();
if (lab.kind === "unavailable") throw new Error(lab.reason);
try {
  const measurements: Measurement[] = [];
  for (const app of apps) {
    for (const way of [hotpush, ...others]) {
      const count = Number(way === hotpush ? values.rollouts : values.others);
      console.log(`${app}: ${way.name}, ${count} roll-outs`);
      measurements.push(await measure(way, app, count, lab.env));
    }
  }
  const text = renderRollouts(measurements);
  console.log(`\n${text}`);
  if (isWhole) {
    writeFileSync(page, withRolloutSection(readFileSync(page, "utf8"), text));
    console.log("\nWritten to docs/performance.md");
  }
} finally {
  if (lab.wasStarted) await closeLab();
}
