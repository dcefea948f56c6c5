import assert from "node:assert/strict";
import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { checkScript } from "../../src/runner/script.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { untilDeployment } from "../harness/records.ts";
import { becomeNobody, needs } from "../harness/requirements.ts";
import { quickScript, startService } from "../harness/service.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { type Place, placeFaults, scriptFaults } from "./script-faults.ts";

const asRoot = { skip: process.getuid?.() === 0 ? false : "it takes root to give files to another user" };

test("each fault that keeps a script from starting is named", asRoot, async (t) => {
  const { TMPDIR } = process.env;
  t.after(() => {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
  });
  // All before the first change of TMPDIR, in which they would be.
  const sound = { name: "a sound script", code: undefined, make() {} };
  const faults = [sound, ...scriptFaults, ...placeFaults].map((fault) => ({ ...fault, place: makePlace(t) }));
  for (const { name, code, make, place } of faults) {
    process.env.TMPDIR = place.temporaryPath;
    make(place);
    const environment = { PATH: process.env.PATH ?? "", HOME: place.root };
    const problem = await checkScript({ repoPath: place.repoPath, user: null, environment });
    assert.equal(problem?.code, code, name);
  }
});

for (const [name, code, make] of [
  [
    "a repository that nobody else may enter",
    "repository_not_accessible",
    (place: Place) => chmodSync(place.repoPath, 0o700),
  ],
  [
    "a script that may not be read",
    "script_not_readable",
    (place: Place) => chmodSync(place.scriptPath, 0o711),
  ],
] as const)
  test(
    `${name} is reported at start and at the run, until it is put right`,
    needs("otherUser"),
    async (t) => {
      const place = makePlace(t);
      make(place);
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
      for (const path of [place.repoPath, place.scriptPath]) chmodSync(path, 0o755);
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
