import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { checkDeployLogDirectory, checkScript, deployLogDirectory } from "../../src/runner/script.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { untilDeployment } from "../harness/records.ts";
import { git } from "../harness/repository.ts";
import { becomeNobody, needs, nobody } from "../harness/requirements.ts";
import { quickScript, startService } from "../harness/service.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { faultsIn, type Place, scriptFaults } from "./script-faults.ts";

const ofNobody = needs("otherUser");
const asRoot = { skip: process.getuid?.() === 0 ? false : "it takes root to give files to another user" };

const moreFaults = faultsIn([
  ["no repository", "repository_missing", ({ repoPath }) => rmSync(repoPath, { recursive: true })],
  [
    "a git repository of another user",
    "repository_dubious_ownership",
    ({ repoPath }) => {
      git(repoPath, "init", "--quiet");
      execFileSync("chown", ["-R", String(nobody), repoPath]);
    },
  ],
]);

test("each fault that keeps a script from starting is named", asRoot, async (t) => {
  const { TMPDIR } = process.env;
  t.after(() => Object.assign(process.env, { TMPDIR: TMPDIR ?? "/tmp" }));
  // All before the first change of TMPDIR, in which they would be.
  const faults = [...scriptFaults, ...moreFaults].map((fault) => ({ ...fault, place: makePlace(t) }));
  for (const { name, code, make, place } of faults) {
    process.env.TMPDIR = place.temporaryPath;
    make(place);
    const environment = { PATH: process.env.PATH ?? "", HOME: place.root };
    const problem = await checkScript({ repoPath: place.repoPath, user: null, environment });
    assert.equal(problem?.code, code, name);
  }
});

test(
  "another user's file in place of the directory for the logs keeps no script from starting",
  asRoot,
  async (t) => {
    const { TMPDIR } = process.env;
    t.after(() => Object.assign(process.env, { TMPDIR: TMPDIR ?? "/tmp" }));
    const user = { uid: nobody, gid: nobody, name: "nobody", home: "/", groups: [nobody] };
    for (const squat of [
      (path: string) => symlinkSync("..", path),
      (path: string) => mkdirSync(path, { mode: 0o777 }),
      (path: string) => writeFileSync(path, ""),
    ]) {
      const place = makePlace(t);
      process.env.TMPDIR = place.temporaryPath;
      const taken = join(place.temporaryPath, `hotpush-${nobody}`);
      squat(taken);
      assert.equal(checkDeployLogDirectory(user), null);
      const chosen = deployLogDirectory(user);
      const { uid, mode } = statSync(chosen);
      assert.deepEqual([chosen !== taken, uid, mode & 0o777], [true, nobody, 0o700]);
      assert.equal(checkDeployLogDirectory(user), null);
      assert.equal(deployLogDirectory(user), chosen, "and it stays");
    }
  },
);

test(
  "what may not be read is reported at start and at the run, until it is put right",
  ofNobody,
  async (t) => {
    const place = makePlace(t);
    chmodSync(place.repoPath, 0o700);
    chmodSync(place.scriptPath, 0o711);
    const service = await startService(t, {
      statePath: join(place.root, "state"),
      repoPath: place.root,
      env: { REPO_PATH: place.repoPath, TMPDIR: place.temporaryPath, HOME: place.root },
      wrapper: becomeNobody,
    });
    const logged = await service.log.waitFor(({ event }) => event === "script.unusable");
    assert.equal(logged.code, "repository_not_accessible");
    const push = githubPush();
    for (const [code, path] of [
      ["repository_not_accessible", place.repoPath],
      ["script_not_readable", place.scriptPath],
    ] as const) {
      await deliver(service.url, push);
      await untilDeployment(service.statePath, 1, ({ problem }) => problem?.code === code);
      chmodSync(path, 0o755);
    }
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
