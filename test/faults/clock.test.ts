import assert from "node:assert/strict";
import { globSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { readDeployments, untilDeployment } from "../harness/records.ts";
import { letGo, startService, waitingScript } from "../harness/service.ts";
import { commitOf } from "../harness/store.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

/** libfaketime gives a process a wall clock that the test sets; the monotonic clock stays real. */
const [library = null] = globSync("/usr/lib/*/faketime/libfaketimeMT.so.1");
const needsLibrary = { skip: library === null && "it needs libfaketime, of the package faketime" };
const jumps = ["+1h", "-1h", "+0", "+1d", "-1d", "-20y", "+15y", "+0"];

test(
  "a wall clock that jumps ends no deployment early, and loses or reorders no push",
  needsLibrary,
  async (t) => {
    const clock = clockOf(t);
    const service = await startService(t, {
      script: waitingScript,
      env: { ...clock.env, DEPLOY_TIMEOUT: "30m" },
    });
    const commits = ["first", ...jumps].map((name, index) => commitOf(`${name} ${index}`));
    const [first = "", ...others] = commits;
    await deliver(service.url, githubPush({ before: commitOf("earlier"), after: first }));
    await service.log.waitFor(({ msg }) => msg === "started");
    let before: string = first;
    for (const [index, after] of others.entries()) {
      clock.set(jumps[index] ?? "+0");
      const { status, json } = await deliver(service.url, githubPush({ before, after }));
      assert.deepEqual([status, json.deployment?.state], [202, "queued"]);
      assert.equal((await fetch(`${service.url}/health`)).status, 200, `healthy at ${jumps[index]}`);
      before = after;
    }
    letGo(service.repoPath);
    const newest = await untilDeployment(
      service.statePath,
      commits.length,
      ({ state }) => state === "succeeded",
    );
    assert.equal(newest.commit, commits.at(-1));
    const [oldest, ...passed] = readDeployments(service.statePath)
      .map(({ state }) => state)
      .slice(0, -1);
    assert.equal(oldest, "succeeded");
    assert.deepEqual(new Set(passed), new Set(["superseded"]));
  },
);

test("a run that is out of time is stopped even if the clock is an hour behind", needsLibrary, async (t) => {
  const clock = clockOf(t);
  const service = await startService(t, {
    script: waitingScript,
    env: { ...clock.env, DEPLOY_TIMEOUT: "1s" },
  });
  await deliver(service.url, githubPush());
  clock.set("-1h");
  assert.equal((await service.log.waitForEnding(1)).event, "deployment.timed_out");
  letGo(service.repoPath);
});

function clockOf(t: TestContext) {
  const path = join(temporaryDirectory(t), "clock");
  // The processes read it at every look at the clock: never half of it.
  const set = (offset: string) => {
    writeFileSync(`${path}.new`, `${offset}\n`);
    renameSync(`${path}.new`, path);
  };
  set("+0");
  const env = {
    LD_PRELOAD: library ?? "",
    FAKETIME_TIMESTAMP_FILE: path,
    FAKETIME_NO_CACHE: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  };
  return { env, set };
}
