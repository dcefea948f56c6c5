/**
 * `node bench/rollout/walk.ts [--list]`: how much code the roll-out of one service runs through, in the process of the
 * command. V8 counts the calls.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { closeLab, openLab } from "../../test/lab/lab.ts";
import { makeProject } from "../../test/lab/project.ts";
import { called } from "../walk-preload.ts";

const lab = await openLab();
if (lab.kind === "unavailable") throw new Error(lab.reason);
const project = await makeProject(lab.env);
try {
  await project.write("v0", "graceful");
  await project.docker("compose", "up", "--detach", "--build", "--wait");
  await project.rollOut();
  await project.write("v1", "graceful");
  const coverage = join(project.directory, "coverage");
  const { code, output } = await project.rollOut({ args: ["app"], env: { NODE_V8_COVERAGE: coverage } });
  if (code !== 0) throw new Error(output);
  const [path = ""] = globSync(`${coverage}/*.json`);
  const files = Object.entries(called(JSON.parse(readFileSync(path, "utf8")).result)).sort();
  if (process.argv.includes("--list"))
    for (const [file, names] of files) console.log(`${file}: ${names.join(", ")}`);
  const ofRollout = files.filter(([file]) => file.startsWith("src/rollout/")).length;
  console.log(
    `The roll-out of one service runs through ${ofRollout} files of src/rollout/, ${files.length} of src/.`,
  );
} finally {
  await project.remove();
  if (lab.wasStarted) await closeLab();
}
