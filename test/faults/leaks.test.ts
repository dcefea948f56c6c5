import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isFinished } from "../../src/deployments/deployment.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { untilDeployment } from "../harness/records.ts";
import { startService } from "../harness/service.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

test("200 deployments leave no descriptor, process or run directory, and the logs of 50", async (t) => {
  const temporaryPath = temporaryDirectory(t);
  const script = '#!/bin/sh\necho "==> Deploy"\necho own >"$DEPLOY_LOG"\n[ $((DEPLOY_ID % 4)) != 0 ]\n';
  const service = await startService(t, { script, env: { TMPDIR: temporaryPath } });
  const pid = service.child.pid ?? 0;
  let before = 0;
  for (let id = 1; id <= 200; id += 1) {
    await deliver(service.url, githubPush());
    await untilDeployment(service.statePath, id, ({ state }) => isFinished(state));
    if (id === 20) before = readdirSync(`/proc/${pid}/fd`).length;
  }
  await until("the last is tidied up", () => readdirSync(join(service.statePath, "runs")).length === 0);
  await until("its process is reaped", () => zombiesOf(pid).length === 0);
  const after = readdirSync(`/proc/${pid}/fd`).length;
  assert.ok(after <= before + 2, `${before} descriptors after 20 deployments, ${after} after 200`);
  const [ownName = ""] = readdirSync(temporaryPath);
  const ownDirectory = join(temporaryPath, ownName);
  for (const directory of [join(service.statePath, "logs"), ownDirectory]) {
    const ids = () =>
      readdirSync(directory).flatMap((name) => name.match(/\d+(?=\.log$)/)?.map(Number) ?? []);
    await until("the oldest are removed", () => ids().length === 50);
    assert.deepEqual([Math.min(...ids()), Math.max(...ids())], [151, 200]);
  }
  assert.equal(statSync(ownDirectory).mode & 0o777, 0o700);
});

function zombiesOf(parent: number): readonly string[] {
  const { stdout } = spawnSync("ps", ["--ppid", String(parent), "-o", "stat="], { encoding: "utf8" });
  return stdout.split("\n").filter((state) => state.startsWith("Z"));
}
