import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { measureAccepting } from "./accept.ts";
import { beforePath, measureAgainstBefore } from "./before.ts";
import { measureCommands } from "./commands.ts";
import { renderDocument } from "./document.ts";
import { measureFirstLine } from "./first-line.ts";
import { measureBodySizes } from "./growth/body-size.ts";
import { measureConnections } from "./growth/connections.ts";
import { measureHistory } from "./growth/history.ts";
import { measureMemory } from "./memory.ts";
import { full, type Pace, quick } from "./pace.ts";
import { measureProjects } from "./projects.ts";
import { renderSection, renderTargets, type Section } from "./report.ts";
import { rolloutSectionOf } from "./rollout/section.ts";
import { measureStartUp } from "./start-up.ts";
import { measureThroughput } from "./throughput.ts";
import { isInstalled, missingText, webhook, wrk } from "./tools.ts";

interface Part {
  readonly measure: (pace: Pace) => Promise<Section>;
  readonly isWithWrk: boolean;
}

const parts: Readonly<Record<string, Part>> = {
  throughput: { measure: measureThroughput, isWithWrk: true },
  accept: { measure: measureAccepting, isWithWrk: false },
  "first-line": { measure: measureFirstLine, isWithWrk: false },
  "start-up": { measure: measureStartUp, isWithWrk: false },
  commands: { measure: measureCommands, isWithWrk: false },
  memory: { measure: measureMemory, isWithWrk: false },
  projects: { measure: measureProjects, isWithWrk: false },
  ...(beforePath ? { before: { measure: measureAgainstBefore, isWithWrk: true } } : {}),
  "body-size": { measure: measureBodySizes, isWithWrk: false },
  history: { measure: measureHistory, isWithWrk: false },
  connections: { measure: measureConnections, isWithWrk: true },
};

const documentPath = join(import.meta.dirname, "../docs/performance.md");

const { values, positionals } = parseArgs({
  options: { quick: { type: "boolean" } },
  allowPositionals: true,
});
await main(values.quick ?? false, positionals);

/**
 * `npm run bench` measures everything and writes docs/performance.md. With `-- --quick` it measures little, and with
 * names of parts only those; neither writes the file.
 */
async function main(isQuick: boolean, names: readonly string[]): Promise<void> {
  const unknown = names.filter((name) => !Object.hasOwn(parts, name));
  if (unknown.length > 0) {
    console.error(`There is no part ${unknown.join(", ")}. The parts are: ${Object.keys(parts).join(", ")}`);
    process.exitCode = 1;
    return;
  }
  for (const tool of [wrk, webhook]) if (!isInstalled(tool)) console.error(missingText(tool));
  const sections: Section[] = [];
  for (const [name, { measure, isWithWrk }] of Object.entries(parts)) {
    if ((names.length > 0 && !names.includes(name)) || (isWithWrk && !isInstalled(wrk))) continue;
    const section = await measure(isQuick ? quick : full);
    console.log(`${renderSection(section)}\n`);
    sections.push(section);
  }
  console.log(renderTargets(sections));
  if (isQuick || names.length > 0) return;
  const rollouts = rolloutSectionOf(readFileSync(documentPath, "utf8"));
  writeFileSync(documentPath, renderDocument(sections, rollouts));
  console.log("\nWritten to docs/performance.md");
}
