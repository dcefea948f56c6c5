import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { checkScript } from "../../src/runner/script.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { untilDeployment } from "../harness/records.ts";
import { becomeNobody, needs, nobody } from "../harness/requirements.ts";
import { quickScript, startService } from "../harness/service.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { type Place, type ScriptFault, scriptFaults } from "./script-faults.ts";

const asRoot = { skip: process.getuid?.() === 0 ? false : "it takes root to give files to another user" };

const logsIn = ({ temporaryPath }: Place) => join(temporaryPath, `hotpush-${process.getuid?.()}`);

const faults: readonly ScriptFault[] = [
  ...scriptFaults,
  {
    name: "no repository",
    code: "repository_missing",
    make: ({ repoPath }) => rmSync(repoPath, { recursive: true }),
  },
  {
    name: "a git repository of another user",
    code: "repository_dubious_ownership",
    make({ repoPath }) {
      execFileSync("git", ["-C", repoPath, "init", "--quiet"]);
      execFileSync("chown", ["-R", String(nobody), repoPath]);
    },
  },
  {
    name: "a link for the script's logs",
    code: "temporary_directory_unusable",
    make: (place) => symlinkSync("..", logsIn(place)),
  },
  {
    name: "a directory of another user for the script's logs",
    code: "temporary_directory_unusable",
    make(place) {
      mkdirSync(logsIn(place));
      chownSync(logsIn(place), nobody, nobody);
    },
  },
];

test("each fault that keeps a script from starting is named", asRoot, async (t) => {
  const { TMPDIR } = process.env;
  t.after(() => Object.assign(process.env, { TMPDIR: TMPDIR ?? "/tmp" }));
  // All before the first change of TMPDIR, in which they would be.
  for (const { name, code, make, place } of faults.map((fault) => ({ ...fault, place: makePlace(t) }))) {
    process.env.TMPDIR = place.temporaryPath;
    make(place);
    const environment = { PATH: process.env.PATH ?? "", HOME: place.root };
    const problem = await checkScript({ repoPath: place.repoPath, user: null, environment });
    assert.equal(problem?.code, code, name);
  }
});

for (const [name, code, mode] of [
  ["repoPath", "repository_not_accessible", 0o700],
  ["scriptPath", "script_not_readable", 0o711],
] as const)
  test(
    `${code} is reported at start and at the run, until it is put right`,
    needs("otherUser"),
    async (t) => {
      const place = makePlace(t);
      chmodSync(place[name], mode);
      const service = await startService(t, {
        statePath: join(place.root, "state"),
        repoPath: place.root,
        env: { REPO_PATH: place.repoPath, TMPDIR: place.temporaryPath, HOME: place.root },
        wrapper: becomeNobody,
      });
      assert.equal((await service.log.waitFor(({ event }) => event === "script.unusable")).code, code);
      const push = githubPush();
      await deliver(service.url, push);
      const failed = await untilDeployment(service.statePath, 1, ({ state }) => state === "failed");
      assert.equal(failed.problem?.code, code);
      chmodSync(place[name], 0o755);
      await deliver(service.url, push);
      await untilDeployment(service.statePath, 1, ({ state }) => state === "succeeded");
    },
  );

function makePlace(t: TestContext): Place {
  const root = temporaryDirectory(t);
  const repoPath = join(root, "repository");
  const place = { root, repoPath, scriptPath: join(repoPath, "deploy.sh"), temporaryPath: join(root, "tmp") };
  for (const path of [repoPath, place.temporaryPath]) mkdirSync(path);
  for (const path of [root, place.temporaryPath]) chmodSync(path, 0o777);
  writeScript(place.scriptPath, quickScript);
  return place;
}
