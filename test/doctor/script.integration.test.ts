import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Fault } from "../../src/doctor/context.ts";
import { type BrokenCase, git, type Place, probe, runCommand, testBroken } from "../harness/doctor.ts";
import { quickScript } from "../harness/service.ts";
import { writeScript } from "../harness/temporary.ts";
import { type ScriptFault, scriptFaults } from "../runner/script-faults.ts";

/** No command is printed for them: a person knows what should be there. */
const isRunnable = ({ name, code }: ScriptFault) =>
  code !== "interpreter_missing" && !name.includes("directory");

/** The broken scripts of test/runner, each fixed here by the command of the report. */
const ways: readonly BrokenCase[] = scriptFaults.map((fault) => ({
  name: fault.name,
  check: "deploy-script",
  breakIt(place) {
    rmSync(place.repoPath, { recursive: true });
    mkdirSync(place.repoPath);
    writeScript(place.scriptPath, quickScript);
    fault.make(place);
    writeFileSync(place.envFile, `REPO_PATH=${place.repoPath}\nWEBHOOK_SECRET=${"s".repeat(32)}\n`);
    git(place, "init", "--quiet");
  },
  async fix(place, found) {
    if (isRunnable(fault)) return await applyFix(place, found);
    rmSync(place.scriptPath, { recursive: true });
    writeScript(place.scriptPath, quickScript);
    const [next] = (await probe(place, "deploy-script")).faults;
    if (next) await runCommand(place, next);
  },
}));

/** The script comes from no commit, so a second command may add it. */
async function applyFix(place: Place, fault: Fault): Promise<void> {
  await runCommand(place, fault);
  for (const next of (await probe(place, "deploy-script")).faults) await runCommand(place, next);
}

testBroken([
  ...ways,
  {
    name: "a directory for logs that all may write to",
    check: "deploy-script",
    breakIt({ temporaryPath }) {
      const path = join(temporaryPath, `hotpush-${process.getuid?.()}`);
      mkdirSync(path);
      chmodSync(path, 0o777);
    },
  },
  {
    name: "the execute bit is only here",
    check: "deploy-script",
    breakIt: (place) => void git(place, "update-index", "--chmod=-x", "deploy.sh"),
  },
  {
    name: "the script is not in git",
    check: "deploy-script",
    severity: "warning",
    breakIt: (place) => void git(place, "rm", "--quiet", "--cached", "deploy.sh"),
  },
  {
    name: "all may write to the repository and the script",
    check: "repository",
    breakIt({ repoPath, scriptPath }) {
      for (const path of [repoPath, join(repoPath, ".git"), scriptPath]) chmodSync(path, 0o777);
    },
  },
]);
