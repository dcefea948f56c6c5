import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type BrokenCase,
  type DoctorFault,
  git,
  type Place,
  probe,
  runCommand,
  testBroken,
} from "../harness/doctor.ts";
import { becomeNobody, needs } from "../harness/requirements.ts";
import { quickScript } from "../harness/service.ts";
import { writeScript } from "../harness/temporary.ts";
import { brokenScripts } from "../runner/script-set-ups.ts";

/** No command is printed for them: a person knows what should be there. */
const notRunnable = [
  "a directory in place of the script",
  "a script whose interpreter does not exist",
  "a script whose interpreter env does not find",
  "a script whose interpreter is not executable",
];

/** The broken scripts of test/runner, each fixed here by the command of the report. */
const ways: readonly BrokenCase[] = brokenScripts.map((setUp) => ({
  name: setUp.name,
  check: "deploy-script",
  options: setUp.isUnprivileged ? needs("root", "otherUser") : {},
  ...(setUp.isUnprivileged ? { run: { wrapper: becomeNobody } } : {}),
  breakIt(place) {
    const besidePath = join(place.root, "beside");
    mkdirSync(besidePath);
    rmSync(place.repoPath, { recursive: true });
    setUp.make({ ...place, besidePath });
    writeFileSync(place.envFile, `REPO_PATH=${place.repoPath}\nWEBHOOK_SECRET=${"s".repeat(32)}\n`);
    if (setUp.isUnprivileged) openTo(place.root, place.envFile);
    else git(place, "init", "--quiet");
  },
  ...(notRunnable.includes(setUp.name)
    ? {
        async fix(place) {
          rmSync(place.scriptPath, { recursive: true });
          writeScript(place.scriptPath, quickScript);
          const [fault] = (await probe(place, "deploy-script")).faults;
          if (fault) await runCommand(place, fault);
        },
      }
    : { fix: applyFix }),
}));

/** The script comes from no commit, so a second command may add it. */
async function applyFix(place: Place, fault: DoctorFault): Promise<void> {
  await runCommand(place, fault);
  for (const next of (await probe(place, "deploy-script")).faults) await runCommand(place, next);
}

function openTo(root: string, envFile: string): void {
  for (const path of [join(root, ".."), root, join(root, "app"), join(root, "tmp"), join(root, "home")]) {
    chmodSync(path, 0o777);
  }
  chmodSync(envFile, 0o644);
}

testBroken(ways);

testBroken([
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
    name: "all may write to the script",
    check: "repository",
    breakIt: ({ scriptPath }) => chmodSync(scriptPath, 0o777),
  },
  {
    name: "all may write to the repository",
    check: "repository",
    breakIt({ repoPath }) {
      for (const path of [repoPath, join(repoPath, ".git")]) chmodSync(path, 0o777);
    },
  },
]);
